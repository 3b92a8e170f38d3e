"""Trained models that travel with the course, so that an explorer works before you have trained anything.

Each is a file of numbers beside this one, and nothing that runs. `python -m course_lib.workshop.checkpoints`
trains them anew.
"""

from functools import cache
from pathlib import Path

from safetensors.torch import load_file

from course_lib.data import date_vocabularies
from course_lib.recurrent import BahdanauDecoder, GRUEncoder, Seq2Seq
from course_lib.translator import Translator

__all__ = ["date_translator"]

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
