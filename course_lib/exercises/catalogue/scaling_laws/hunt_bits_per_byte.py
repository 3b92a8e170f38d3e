"""Bug hunt: one unit for all tokenizers."""

import math

import torch


def bits_per_byte(log_p, tokens, bytes_of):
    real = tokens != 0  # (text, length)
    nats = -(log_p * real).sum()
    size = (bytes_of[tokens] * real).sum()  # bytes of the whole corpus
    return nats / size / math.log(2)


BUGS = r"""
.sum() => .sum(dim=1)
+ nats / size -> (nats / size).mean()
.sum() => .sum(dim=1)
+ nats / size -> (nats / size).median()
    every text has the same weight, however short it is
/ math.log(2) -> * math.log(2)
/ math.log(2) ->
    the result is not in bits: a nat is more than a bit, so the number of bits must be larger than the number of nats
"""
MISTAKES = r"""
bytes_of[tokens] * real -> bytes_of[tokens]
    The bytes of the padding are counted.
log_p * real -> log_p
    The log-probabilities at padding are counted.
(bytes_of[tokens] * real) -> real
    You divide by tokens, so a tokenizer with longer tokens looks worse. Divide by the bytes of the tokens.
(bytes_of[tokens] * real) -> torch.ones_like(tokens)
    You divide by all positions, padding included. Divide by the bytes of the tokens.
/ math.log(2) -> / math.log(2) ** 2
    You convert to bits twice. Divide by math.log(2) once.
/ math.log(2) -> / math.log(10)
    Your unit is that of logarithms to the base 10. A bit is log 2 nats: divide by math.log(2).
/ math.log(2) -> / math.log(256)
    You divide by the nats of a byte, log 256. Asked are bits for each byte: divide by math.log(2).
nats / size -> size / nats
    Your ratio is upside down: these are bytes for each unit of information.
= -(log_p -> = (log_p
    Your result is negative. The log-probabilities are: the number of bits is minus their sum.
= -(log_p * real) -> = -(log_p.exp() * real)
    You take exp of the log-probabilities. The number of nats is minus the sum of the logarithms themselves.
tokens != 0 -> tokens == 0
    You keep the padding and leave out the tokens. 0 is padding.
.sum() => .sum(dim=1)
    Your result has one number for each text. Sum over all texts before you divide.
.sum() => .sum(dim=1)
+ nats / size -> (nats / size).sum()
    You add the ratios of the texts. Sum nats and bytes over all texts, then divide.
.sum() => .sum(dim=1)
+ nats / size -> (nats / size * real.sum(dim=1) / real.sum()).sum()
    You average the ratios of the texts with their numbers of tokens as weights. Sum nats and bytes over all texts, then
    divide.
nats / size -> nats / real.sum() / bytes_of[1:].float().mean()
nats / size -> nats / real.sum() / bytes_of.float().mean()
    You divide by the mean number of bytes of the vocabulary. Divide by the bytes of the tokens that occur, each as
    often as it occurs.
nats / size -> nats
    You do not divide by the number of bytes.
nats / size -> nats / real.sum() * (size / real.sum())
    You multiply the bits of a token by the mean number of its bytes. Divide by it.
bytes_of[tokens] * real -> tokens * real
    You add up the ids of the tokens. The bytes of a token are bytes_of[token].
"""

CASES = (
    dict(
        log_p=torch.tensor([[-1.0, -2.0], [-4.0, -1.0]]),
        tokens=torch.tensor([[1, 2], [1, 0]]),
        bytes_of=torch.tensor([5, 2, 3]),
    ),
    dict(
        log_p=torch.tensor([[-0.5, -1.0, -3.0], [-2.0, -0.3, -7.0], [-1.5, -4.0, -2.0]]),
        tokens=torch.tensor([[1, 3, 2], [2, 1, 0], [3, 0, 0]]),
        bytes_of=torch.tensor([4, 1, 2, 6]),
    ),
)
HINTS = """
Two texts, one of 1 byte with 8 bits, one of 99 bytes with 99 bits. How many bits per byte has the corpus?
107 bits over 100 bytes. And 1 nat is 1.44 bits.
Sum nats and bytes over all texts before dividing, then divide by math.log(2).
"""
DIFFERENTIABLE = False
