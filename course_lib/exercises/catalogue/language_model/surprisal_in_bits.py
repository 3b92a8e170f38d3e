"""Surprisal in bits."""

import math

import torch

from course_lib.exercises.catalogue._shared import random_tensor, token_losses


def surprisal_in_bits(logits, tokens):
    log_p = logits[:-1].log_softmax(dim=-1)  # (length - 1, vocabulary)
    rows = torch.arange(len(tokens) - 1)
    return -log_p[rows, tokens[1:]] / math.log(2)  # (length - 1,)


def reference(logits, tokens):
    return token_losses(logits[None, :-1], tokens[None, 1:])[0] / math.log(2)


MISTAKES = r"""
math.log(2) -> 1
    This is in nats. Bits use the logarithm to base 2: divide by ln 2.
math.log(2) -> math.log(10)
    This is the logarithm to base 10. Bits use base 2.
/ math.log(2) -> * math.log(2)
    You multiply by ln 2. A nat is more than a bit: divide.
/ math.log(2) -> / 2
    You divide by 2. A nat is 1 / ln 2 bits: divide by math.log(2).
tokens[1:] -> tokens[:-1]
    You score each token with the logits at its own position. The logits at position t predict token t + 1.
logits[:-1] -> logits[1:]
+ tokens[1:] -> tokens[:-1]
    You shift the wrong way: these logits have seen the token they are scored on. The logits at position t predict
    token t + 1.
logits[:-1] -> logits[1:]
    You score each token with the logits at its own position. Drop the last logits, and the first token.
logits[:-1] -> logits
+ len(tokens) - 1 -> len(tokens)
+ tokens[1:] -> tokens
    You score each token with the logits at its own position, the first one too. The logits at position t predict
    token t + 1, and nothing predicts the first.
len(tokens) - 1 -> len(tokens) - 2
+ tokens[1:] -> tokens[2:]
    You score token t + 2 with the logits at position t. They predict token t + 1.
len(tokens) - 1 -> len(tokens) - 2
+ tokens[1:] -> tokens[1:-1]
    The surprisal of the last token is missing: the logits before it predict it.
len(tokens) - 1 -> 1, len(tokens) - 1
+ tokens[1:] -> tokens[2:]
    The surprisal of token 1 is missing: the logits at position 0 predict it.
return -log_p -> return log_p
    The sign is missing: a probability is below 1, so its logarithm is negative, and surprisal is minus that.
return -log_p[rows, tokens[1:]] / math.log(2) -> return log_p[rows, tokens[1:]].exp()
    These are the probabilities. Surprisal is minus their logarithm to base 2.
return -log_p[rows, tokens[1:]] / math.log(2) -> return 1 - log_p[rows, tokens[1:]].exp()
    This is one minus the probability. Surprisal is minus the logarithm of the probability, to base 2.
return -log_p[rows, tokens[1:]] / math.log(2) -> return 1 / log_p[rows, tokens[1:]].exp()
    This is two to the power of the surprisal. Return the logarithm itself.
] / -> ].mean() /
    This is the mean, the cross-entropy of the whole text. Return one number per token.
] / -> ].sum() /
    This is the sum over the text. Return one number per token.
] / -> ].cumsum(dim=0) /
    You add up the surprisals from the start. Return that of each token alone.
.log_softmax(dim=-1) ->
    A logit is no log-probability: the softmax is missing.
.log_softmax(dim=-1) -> .softmax(dim=-1)
    The logarithm is missing: these are minus the probabilities, divided by ln 2. Use log_softmax.
.log_softmax(dim=-1) -> .softmax(dim=-1).log_softmax(dim=-1)
    Your softmax is applied twice. cross_entropy and log_softmax take logits, not probabilities.
.log_softmax(dim=-1) -> .log_softmax(dim=0)
logits[:-1].log_softmax(dim=-1) -> logits.log_softmax(dim=0)[:-1]
    Your softmax runs over the positions. The probabilities of one position sum to 1: dim=-1.
.log_softmax(dim=-1) -> .flatten().log_softmax(dim=0).view(len(tokens) - 1, -1)
    Your softmax runs over all positions together. The probabilities of one position sum to 1: dim=-1.
logits[:-1].log_softmax(dim=-1) -> (logits[:-1].exp() / logits[:-1].exp().sum(dim=-1, keepdim=True)).log()
    The formula is right, but the exponential of a logit above 88 overflows in float32. log_softmax subtracts the
    largest logit first.
.log_softmax(dim=-1) -> .softmax(dim=-1).log()
    A probability below about 1e-45 is 0 in float32, and its logarithm is minus infinity. log_softmax takes the
    logarithm without computing the probability first.
-log_p[rows, tokens[1:]] -> torch.special.entr(log_p.exp()).sum(dim=-1)
    This is the entropy of each distribution, the surprisal that the model expects. Take the probability of the token
    that came.
-log_p[rows, tokens[1:]] -> -log_p.amax(dim=-1)
    This is the surprisal of the most probable token. Take the one that came.
-log_p[rows, tokens[1:]] -> -log_p[:, tokens[1:]]
    logits[:, tokens] takes the columns of all tokens in every row. Each row needs one: index rows and columns
    together, or use gather.
-log_p[rows, tokens[1:]] -> -log_p[:, tokens[1:]].mean(dim=0)
    logits[:, tokens] takes the columns of all tokens in every row, and you average them over the rows. Each row needs
    one: index rows and columns together, or use gather.
-log_p[rows, tokens[1:]] -> -log_p
    This is the surprisal of every token of the vocabulary. Take the one that came: column tokens[t + 1] of row t.
-log_p[rows, tokens[1:]] -> torch.cat([log_p.new_zeros(1), -log_p[rows, tokens[1:]]])
    The values are right, but the first token gets one too. Nothing predicts it: return length - 1 numbers.
-log_p[rows, tokens[1:]] -> -log_p[rows, tokens[1:], None]
    The values are right, with one axis too many. Take [:, 0] after gather.
return -log_p[rows, tokens[1:]] / math.log(2) -> return -logits.log_softmax(dim=-1).roll(1, 0)[torch.arange(len(tokens)), tokens] / math.log(2)
    One token too many: nothing predicts the first one, and you give it the logits of the last position.
"""

CASES = (
    dict(
        logits=torch.tensor([[0.0, 0.0], [0.0, 2.0], [1.0, 0.0]]),
        tokens=torch.tensor([0, 1, 0]),
    ),
    # the probability of the last token underflows
    dict(
        logits=torch.tensor([[0.0, 1.0, 2.0], [110.0, 0.0, 50.0], [0.0, 0.0, 0.0]]),
        tokens=torch.tensor([0, 2, 1]),
    ),
    dict(logits=random_tensor(5, 4, seed=1), tokens=torch.tensor([3, 0, 2, 2, 1])),
    # the exponential of such a logit overflows
    dict(logits=90 + 10 * random_tensor(4, 6, seed=3), tokens=torch.tensor([5, 0, 3, 1])),
    dict(logits=3 * random_tensor(7, 9, seed=2), tokens=torch.tensor([8, 3, 0, 5, 5, 1, 7])),
)
HINTS = """
How many predictions are there for a text of n tokens, and which logits predict token 1?
logits[:-1].log_softmax(-1) is (length - 1, vocabulary); pick column tokens[1:] in each row.
Divide the negative natural logarithm by math.log(2).
"""
