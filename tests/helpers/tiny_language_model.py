"""A small language model with random weights, and a tokenizer of single characters for it."""

import time

import torch

from course_lib.topics.pretrained import Tokenizer
from course_lib.transformer import DecoderOnly, TransformerConfig
from tests.helpers.transformer import LLAMA, randomized

CHARACTERS = "∎ abcdefghijklmnopqrstuvwxyz.\n"
LAYERS, HEADS, CONTEXT = 4, 3, 400


class Characters(Tokenizer):
    """Every character is a token; ∎ ends the text."""

    eos_id = 0

    def __init__(self):
        pass

    def __len__(self):
        return len(CHARACTERS)

    def encode(self, text):
        return [CHARACTERS.index(one) for one in text]

    def decode(self, ids):
        return "".join(CHARACTERS[i] for i in ids)


def tiny_language_model(pause=0.0):
    """Return (model, tokenizer); the end token is improbable, and each call takes `pause` seconds longer."""
    torch.manual_seed(0)
    config = TransformerConfig(
        target_vocabulary=len(CHARACTERS),
        d_model=24,
        num_heads=HEADS,
        decoder_layers=LAYERS,
        d_ff=17,
        max_length=CONTEXT,
        **LLAMA,
    )
    model = randomized(DecoderOnly(config)).eval()
    model.register_forward_hook(lambda *_: time.sleep(pause))
    improbable = torch.zeros(len(CHARACTERS)).index_fill(0, torch.tensor([0]), -5.0)
    model.lm_head.register_forward_hook(lambda _, __, logits: logits + improbable)
    return model, Characters()
