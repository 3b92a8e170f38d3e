"""Trained models that travel with the course, so that an explorer works before you have trained anything.

Each is a file of numbers beside this one, and nothing that runs. Its metadata say what it reached on data
that it was not trained on. `python -m course_lib.tools.checkpoints` trains them anew; the translator of real sentences
is what an hour of `python -m course_lib.train` left in its folder.
"""

from functools import cache
from pathlib import Path

from safetensors.torch import load_file, load_model

from course_lib.checkpoints.lookup import LetterLookup, LookupModel
from course_lib.checkpoints.pronouns import PronounReader, untrained_pronoun_reader
from course_lib.data import date_vocabularies, phrasebook_vocabularies
from course_lib.data.subwords import Subwords
from course_lib.topics.recurrent import BahdanauDecoder, GRUEncoder, Seq2Seq
from course_lib.train.translator import PhraseTranslator, SubwordTranslator, Translator
from course_lib.transformer import Transformer, TransformerConfig

__all__ = [
    "date_translator",
    "letter_lookup",
    "phrase_translator",
    "pronoun_reader",
    "sentence_translator",
]

HERE = Path(__file__).parent


def untrained_date_translator() -> Translator:
    """Return the model of `date_translator` before training."""
    source, target = date_vocabularies()
    encoder = GRUEncoder(len(source), embedding_size=32, hidden_size=16)
    decoder = BahdanauDecoder(len(target), embedding_size=16, hidden_size=32, memory_size=32)
    return Translator(Seq2Seq(encoder, decoder), source, target, max_length=11)


@cache
def date_translator() -> Translator:
    """Return a trained Bahdanau model that writes dates of ten languages in ISO 8601.

    24,366 parameters, 750 steps, as in notebook 03. The file says what it reached on held-out days.
    """
    translator = untrained_date_translator()
    translator.model.load_state_dict(load_file(HERE / "dates.safetensors"))
    translator.model.eval()
    return translator


def untrained_phrase_translator() -> PhraseTranslator:
    """Return the model of `phrase_translator` before training."""
    source, target = phrasebook_vocabularies()
    config = TransformerConfig(
        source_vocabulary=len(source),
        target_vocabulary=len(target),
        d_model=64,
        num_heads=4,
        encoder_layers=2,
        decoder_layers=2,
        d_ff=128,
        norm="pre",
        tie_embeddings=True,
    )
    return PhraseTranslator(Transformer(config), source, target)


@cache
def phrase_translator() -> PhraseTranslator:
    """Return a trained Transformer that writes English sentences of the phrasebook in French.

    198,080 parameters, 2,000 steps. Notebook 08 trains such a model with its own loop. The file says what it reached
    on held-out combinations.
    """
    translator = untrained_phrase_translator()
    load_model(translator.model, HERE / "phrases.safetensors")
    translator.model.eval()
    return translator


@cache
def sentence_translator() -> SubwordTranslator:
    """Return a Transformer that translates English captions of photographs into German.

    2.3 million parameters, one hour on one CPU core on the 29,000 pairs of Multi30k (Elliott et al. 2016; CC BY-NC-SA
    4.0, so these weights are for non-commercial use), stored in float16. The file says how it was trained and its BLEU on
    the test sentences.
    """
    subwords = Subwords.read(HERE / "translator.json")
    config = TransformerConfig(
        target_vocabulary=len(subwords),
        d_model=128,
        num_heads=4,
        encoder_layers=4,
        decoder_layers=4,
        d_ff=256,
        norm="pre",
        tie_embeddings=True,
    )
    model = Transformer(config)
    load_model(model, HERE / "translator.safetensors")
    return SubwordTranslator(model.eval(), subwords)


@cache
def pronoun_reader() -> PronounReader:
    """Return a trained layer of self-attention that names the noun an adjective belongs to.

    18,672 parameters, 600 steps; study 4b trains such readers. The file says what it reached on held-out sentences.
    """
    reader = untrained_pronoun_reader()
    reader.model.load_state_dict(load_file(HERE / "pronouns.safetensors"))
    reader.model.eval()
    return reader


@cache
def letter_lookup() -> LetterLookup:
    """Return a trained layer of four heads that looks up four letters in one step.

    7,456 parameters, 600 steps, as in notebook 05. The file says what it reached on questions it has not
    seen.
    """
    lookup = LetterLookup(LookupModel())
    lookup.model.load_state_dict(load_file(HERE / "lookup.safetensors"))
    lookup.model.eval()
    return lookup
