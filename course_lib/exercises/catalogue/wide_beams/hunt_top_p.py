"""Bug hunt: nucleus sampling."""

import torch

from course_lib.transformer.decoding import top_p


def nucleus(probabilities, p):
    ordered, order = probabilities.sort(descending=True)
    before = ordered.cumsum(dim=0) - ordered  # the probability of all that are more probable
    kept = order[before < p]
    left = torch.zeros_like(probabilities)
    left[kept] = probabilities[kept]
    return left / left.sum()


def _normalised(*parts):
    return torch.tensor(parts) / sum(parts)


def reference(probabilities, p):
    """The library's filter, in float64 and with a margin: it takes logits, whose softmax is rounded."""
    kept = top_p(probabilities.double().log(), p - 1e-9).isfinite()
    left = torch.where(kept, probabilities, 0.0)
    return left / left.sum()


SORT, UNSORTED = (
    "probabilities.sort(descending=True)",
    "probabilities, torch.arange(len(probabilities))",
)
BUG = "ordered.cumsum(dim=0) <= p"
MISTAKES = f"""
before < p -> ({BUG}) | (before == 0)
    Now at least one token is kept, and nothing is NaN. But the kept probabilities can still sum to less than p.
before < p -> torch.cat([before[:1], before[:-1]]) < p
    They reach p now, but you keep one token too many.
{SORT} -> {UNSORTED}
    You add up unsorted probabilities, so a token is kept because its id is small. The sort was right.
{SORT} -> {UNSORTED}
+ before < p -> {BUG}
    You add up unsorted probabilities, and still drop the token that crosses p. The sort was right.
descending=True ->
    The token that crosses p is kept now, but you sort in ascending order and keep the tail.
descending=True ->
+ before < p -> {BUG}
    You sort in ascending order and keep the tail. The sort was right: which token is dropped that should be kept?
before < p -> ordered.cumsum(dim=0) > p
before < p -> ordered.cumsum(dim=0) >= p
before < p -> before >= p
    The comparison is the wrong way round: now the probable tokens are dropped and the tail is kept.
order[before < p] -> before < p
    The mask is in sorted order and the probabilities are not, so it keeps other tokens. order maps one to the other.
order[before < p] -> {BUG}
    The mask is in sorted order and the probabilities are not, so it keeps other tokens; order mapped one to the
    other. And the token that crosses p is still dropped.
left / left.sum() -> left
    The right tokens are kept, but their probabilities no longer sum to 1.
left / left.sum() -> left
+ before < p -> {BUG}
    The probabilities no longer sum to 1. The division was right: which token is dropped that should be kept?
left / left.sum() -> left / p
    The right tokens are kept, but you divide by p. The kept ones usually sum to more: divide by their sum.
left / left.sum() -> left / p
+ before < p -> {BUG}
    You divide by p, and the kept probabilities sum to less. The division was right: which token is dropped that
    should be kept?
left / left.sum() -> torch.softmax(probabilities.masked_fill(left == 0, -torch.inf), dim=0)
    The right tokens are kept, but you take the softmax of probabilities. Divide them by their sum.
left / left.sum() -> torch.softmax(left, dim=0)
    You take the softmax of probabilities, where exp(0) is 1, so dropped tokens can still be sampled. Divide by the
    sum.
left / left.sum() -> (left / left.sum()).nan_to_num(0.0)
+ before < p -> {BUG}
    You replace NaN by 0, and then no token is left to sample. That hides the bug: why was nothing kept, and how much
    do the kept tokens sum to in the other cases?
order[before < p] -> order
    Nothing is dropped any more.
order[before < p] -> order[:1]
    You keep the most probable token only, whatever p is.
before < p -> ordered.cumsum(dim=0) < p
    Replacing <= by < makes it worse: now even a sum of exactly p is cut. The token that brings the sum to p or above is still
    dropped.
before < p -> before <= p
    Right, except where the kept ones sum to exactly p: then yours keeps one more. A token is kept if those before it
    sum to less than p.
before < p -> {BUG.replace("<= p", "<= 1 - p")}
before < p -> before < 1 - p
    You compare the sum with 1 - p. The kept ones must reach p.
order[before < p] -> probabilities >= 1 - p
    You compare each probability with 1 - p. The kept ones must reach p together.
order[before < p] -> probabilities >= p
    You keep a token only if it has at least p by itself. The kept ones must reach p together.
left[kept] = probabilities[kept] -> left = torch.where(before < p, ordered, 0.0)
    The right probabilities are kept, but in sorted order. They must be in the order of the vocabulary.
= probabilities[kept] -> = ordered[kept]
    kept holds ids of tokens, and ordered is sorted, so the kept tokens get probabilities of others:
    probabilities[kept].
before < p -> (ordered.cumsum(dim=0) < p) | (before == 0)
    The most probable token is kept, but a later one that reaches or crosses p is dropped. Keep a token if those before
    it sum to less than p.
before < p -> torch.cat([before[:1], before[:-1]]) <= p
    You keep more than the token that reaches or crosses p. Keep a token if those before it sum to less than p.
"""

GIVEN = f"before < p -> {BUG}"
CASES = (
    dict(probabilities=torch.tensor([0.1, 0.2, 0.5, 0.15, 0.05]), p=0.75),
    dict(probabilities=torch.tensor([0.125, 0.25, 0.0625, 0.5, 0.0625]), p=0.75),  # 1/2 + 1/4
    dict(probabilities=torch.tensor([0.1, 0.05, 0.65, 0.15, 0.05]), p=0.6),
    dict(probabilities=_normalised(4.0, 1.0, 9.0, 5.0, 2.0, 12.0, 3.0, 7.0), p=0.6),
)
HINTS = """
For p = 0.8, add up the original probabilities of the kept tokens. Nucleus sampling promises at least p.
Which token brings the sum to p or above? Is it kept? What if the first one does?
A token is kept if those before it sum to less than p: order[ordered.cumsum(dim=0) - ordered < p].
"""
DIFFERENTIABLE = False
