"""Top-p for a batch."""

import math

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.transformer.decoding import top_p


def keep_top_p(logits, p):
    ordered, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    before = ordered.cumsum(dim=-1) - ordered  # the probability of all that are more probable
    kept = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, before < p)
    return torch.softmax(logits.masked_fill(~kept, -torch.inf), dim=-1)


def reference(logits, p):
    return top_p(logits, p).softmax(-1)


ALL = "torch.softmax(logits, dim=-1)"
ACROSS = "torch.softmax(logits, dim=0)"
SORTED = f"{ALL}.sort(dim=-1, descending=True)"
KEPT = "torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, before < p)"
FILLED = "logits.masked_fill(~kept, -torch.inf)"
RESULT = f"torch.softmax({FILLED}, dim=-1)"
NOTHING_SORTED = f"{ALL}, torch.arange(logits.shape[-1]).expand(logits.shape)"
MISTAKES = f"""
before < p -> ordered.cumsum(dim=-1) <= p
    You drop the token that crosses p, so the kept probabilities sum to less than p. If the first token alone has more
    than p, none is kept and the softmax gives NaN. Keep a token if those before it sum to less than p.
before < p -> ordered.cumsum(dim=-1) <= p
+ ~kept, -torch.inf -> ~kept, -1e9
    You drop the token that crosses p. If the first token alone has more than p, none is kept, and with -1e9 instead
    of -inf all of them get the same probability. Keep a token if those before it sum to less than p.
before < p -> ordered.cumsum(dim=-1) < p
    You drop the token that brings the sum to p or above, so the kept probabilities sum to less than p. Keep a token
    if those before it sum to less than p.
before < p -> (ordered.cumsum(dim=-1) <= p) | (before == 0)
before < p -> (ordered.cumsum(dim=-1) < p) | (before == 0)
    The most probable token is kept, but a later one that crosses p is dropped, so the kept probabilities can sum to
    less than p. Keep a token if those before it sum to less than p.
before < p -> ordered.cumsum(dim=-1) <= p
+ {RESULT} -> {RESULT}.nan_to_num(0.0)
    You drop the token that crosses p, and where nothing is left you replace NaN by 0. Keep a token if those before it
    sum to less than p, then at least one is kept.
before < p -> torch.cat([before[:, :1], before[:, :-1]], dim=-1) < p
    You keep one token beyond the one that crosses p.
before < p -> before <= p
    Right, except where the kept ones sum to exactly p: then yours keeps one more. A token is kept if those before it
    sum to less than p.
before < p -> before >= p
    You drop the tokens that should be kept, and keep the tail.
before < p -> ordered.cumsum(dim=-1) > p
before < p -> ordered.cumsum(dim=-1) >= p
    You keep the tail, starting with the token that crosses p, and drop the probable tokens. The comparison is the
    wrong way round.
before < p -> before < 1 - p
    You keep tokens whose probabilities sum to 1 - p. In a sum that begins with the most probable token, the threshold
    is p.
before < p -> before == 0
    You keep the most probable token only, whatever p is. Keep tokens until their probabilities sum to at least p.
before < p -> ordered < p
    You compare each probability with p. Compare the sum of those that are more probable: before < p.
before < p -> (before < p)[:1].expand(before.shape)
    You keep as many tokens in each row as in the first. How many are needed to reach p differs from row to row.
{SORTED} -> {NOTHING_SORTED}
    You add up in the order of the vocabulary, so a token is kept because its id is small. Sort by probability first.
, descending=True ->
    You sort in ascending order, so the tail is kept. descending=True.
{SORTED} -> logits.sort(dim=-1, descending=True)
    You add up logits. p is a probability: add up the softmax.
{SORTED} -> {ACROSS}.sort(dim=-1, descending=True)
    Your softmax runs over the batch. Each row is a distribution over the vocabulary: dim=-1.
{SORTED} -> {ACROSS}.sort(dim=-1, descending=True)
+ {RESULT} -> {ACROSS} * kept / ({ACROSS} * kept).sum(-1, keepdim=True)
    Your softmax runs over the batch. Each row is a distribution over the vocabulary: dim=-1.
{SORTED} -> {ALL}.sort(dim=0, descending=True)
+ ordered.cumsum(dim=-1) -> ordered.cumsum(dim=0)
+ scatter(-1 -> scatter(0
{SORTED} -> {ACROSS}.sort(dim=0, descending=True)
+ ordered.cumsum(dim=-1) -> ordered.cumsum(dim=0)
+ scatter(-1 -> scatter(0
    You sort and add up along the batch: dim=-1.
{SORTED} -> {ALL}.sort(dim=0, descending=True)
    You sort along the batch. Sort each row: dim=-1.
ordered.cumsum(dim=-1) -> ordered.cumsum(dim=0)
    You add up along the batch. Add up each row: dim=-1.
{SORTED} -> {ALL}.flatten().sort(descending=True)
+ {KEPT} -> torch.zeros(logits.numel(), dtype=torch.bool).scatter(-1, order, before < p).view_as(logits)
    You sort and add up all rows together, so the sum reaches p before most rows are looked at. Each row has its own
    sum: dim=-1.
{KEPT} -> before < p
    You apply a mask in sorted order to unsorted logits, so it drops other tokens. Bring the mask back into the order
    of the vocabulary with scatter.
{KEPT} -> (before < p).gather(-1, order)
    You bring the mask back with gather, which applies the permutation once more. order says where each element came from: scatter
    writes it there.
scatter(-1 -> scatter(0
    You scatter along the batch, dim=0. order holds ids of tokens: scatter(-1, order, before < p).
{KEPT} -> {KEPT}.any(0, keepdim=True).expand(logits.shape)
    order[before < p] joins the tokens of all rows, so a token that one row keeps is kept in every row. Bring the mask
    back row by row: scatter(-1, order, before < p).
{KEPT} -> {ALL} >= p
    You keep a token only if it has at least p by itself. The kept ones must reach p together.
{KEPT} -> {ALL} >= p * ordered[:, :1]
    You keep the tokens with at least p times the largest probability. That is min-p, another filter: here the kept
    ones must reach p together.
{FILLED} -> logits.sort(dim=-1, descending=True).values.masked_fill(before >= p, -torch.inf)
    Your probabilities are right, but sorted. They must be in the order of the vocabulary.
{RESULT} -> {ALL} * kept
    The probabilities of the kept tokens no longer sum to 1. Set the other logits to -inf before the softmax, or
    divide by the sum.
{RESULT} -> {ALL} * kept / p
    The right tokens are kept, but you divide by p. The kept ones usually sum to more: divide by their sum.
{RESULT} -> {ALL} * kept / ({ALL} * kept).sum()
    The right tokens are kept, but you divide by the sum over the whole batch. Each row sums to 1: sum(dim=-1,
    keepdim=True).
{RESULT} -> {ALL} * kept / ({ALL} * kept).sum(dim=0)
    The right tokens are kept, but you divide by the sum of each column. Each row sums to 1: sum(dim=-1,
    keepdim=True).
{FILLED} -> logits * kept
    You set the dropped logits to 0. exp(0) is 1, so these tokens can still be sampled. Set them to minus infinity.
{RESULT} -> {FILLED}
    The right logits are kept, but you should return probabilities: take the softmax.
{RESULT} -> torch.softmax({FILLED}, dim=0)
    Your last softmax runs over the batch. Each row is a distribution over the vocabulary: dim=-1.
{RESULT} -> {ALL}
    Nothing is dropped: these are the probabilities of all tokens.
{FILLED} -> {ALL}.masked_fill(~kept, -torch.inf)
    The right tokens are kept, but you take the softmax of probabilities. Divide the kept probabilities by their sum,
    or take the softmax of the kept logits.
{FILLED} -> {ALL} * kept
    You take the softmax of probabilities, where exp(0) is 1, so dropped tokens can still be sampled. Divide the kept
    probabilities by their sum.
torch.softmax(logits.masked_fill(~kept, -torch.inf), dim=-1) -> torch.softmax(ordered.log().masked_fill(before >= p, -torch.inf), dim=-1).gather(-1, order)
torch.softmax(logits.masked_fill(~kept, -torch.inf), dim=-1) -> torch.softmax(ordered.log().masked_fill(before > p, -torch.inf), dim=-1).gather(-1, order)
    You bring the result back with gather, which applies the permutation once more. order says where each element came
    from: scatter writes it there, and so does gather with the inverse, order.argsort(-1).
torch.softmax(logits.masked_fill(~kept, -torch.inf), dim=-1) -> torch.softmax(ordered.log().masked_fill(before > p, -torch.inf), dim=-1)
    Your probabilities are sorted. They must be in the order of the vocabulary: bring them back with scatter.
before < p -> (torch.cat([ordered[:, :1], before[:, 1:]], dim=-1) <= p) | (torch.arange(len(logits)) == 0)[:, None]
before < p -> (ordered.cumsum(dim=-1) <= p) | (torch.arange(len(logits)) == 0)[:, None]
    Index 0 of the mask is its first row, so everything in the first row is kept, and the most probable token of the
    other rows is not protected. The first token of each row is at index [..., 0].
torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, before < p) -> torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, before < p)[:1].expand(logits.shape)
    The tokens that the first row keeps are kept in all rows. Each row has its own.
"""

CASES = (
    dict(logits=torch.tensor([[0.0, 1.2, 2.0, 0.6]]), p=0.7),
    dict(  # the first token of the second row has more than p by itself
        logits=torch.tensor([[0.3, 1.0, 0.8, -0.2], [4.0, 0.5, 1.0, 0.0]]), p=0.6
    ),
    # 1/2 and twice 1/4: the first token has exactly p
    dict(logits=torch.tensor([[0.0, math.log(2), 0.0], [0.0, 0.0, math.log(2)]] * 2), p=0.5),
    dict(logits=random_tensor(5, 5, seed=4), p=0.8),
    dict(logits=2 * random_tensor(4, 9, seed=5), p=0.9),
)
HINTS = """
Sort the probabilities, the largest first, and add up. Which tokens do you need to reach p?
A token is kept if those before it sum to less than p: ordered.cumsum(dim=-1) - ordered < p.
That mask is in sorted order. torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, mask) brings it back into
    the order of the vocabulary.
"""
DIFFERENTIABLE = False
