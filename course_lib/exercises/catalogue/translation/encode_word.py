"""Encoding a word by merges."""

import torch


def encode_word(tokens, merges):
    for pair, new in merges:  # in the order in which they were learnt
        merged, i = [], 0
        while i < len(tokens):
            if tuple(tokens[i : i + 2]) == pair:
                merged.append(new)
                i += 2
            else:
                merged.append(tokens[i])
                i += 1
        tokens = merged
    return torch.tensor(tokens)


SAME = "tuple(tokens[i : i + 2]) == pair"
MISTAKES = f"""
merged, i = [], 0 -> merged, i, tokens = [], 0, list(tokens[::-1])
+ tuple(tokens[i : i + 2]) == pair -> tuple(tokens[i : i + 2]) == pair[::-1]
+ tokens = merged -> tokens = merged[::-1]
    You read the word from its end. Where two pairs overlap, as in a a a, the first one from the left is merged.
i += 2 -> i += 1
    The second token of a merged pair is still there. Both become the new one: go on two places further.
while i < len(tokens) -> while i < len(tokens) - 1
    The last token is lost where it is not the end of a pair.
{SAME} -> sorted(tokens[i : i + 2]) == sorted(pair)
    You also merge a pair in reverse order. Order counts: 6 5 is not the pair 5 6.
{SAME} -> tuple(tokens[i : i + 2]) == pair and new not in merged
    Each pair is merged where it occurs first. Merge it everywhere.
{SAME} -> tokens[i] in pair
    You replace every token that occurs in a pair. Only the two in a row are replaced.
{SAME} -> tokens[i] == pair[0]
    You look at the first token of a pair only. The next one has to be its second.
merged.append(new) -> merged += [new, new]
    A pair becomes two new tokens. It becomes one.
merged.append(new) -> merged += [*pair, new]
    The pair stays in front of the new token. It is replaced by it.
merged.append(new) -> pass
    The pair is left out. The new token takes its place.
in merges -> in merges[::-1]
    You apply the last merge first. Apply them in the order in which they were learnt: the first makes the tokens that
    later ones need.
in merges -> in merges[:1]
    Only the first merge is applied. Apply all, one after the other.
in merges -> in merges[:-1]
    The last merge is left out.
in merges -> in []
    You return the tokens as they were.
in merges -> in sorted(merges)
    You merge in another order, by place or by number. Apply the merges in the order in which they were learnt, each to
    the whole word.
in merges -> in merges[:1]
+ {SAME} -> tuple(tokens[i : i + 2]) in dict(merges)
+ merged.append(new) -> merged.append(dict(merges)[tuple(tokens[i : i + 2])])
    You read the word once and merge each pair that you meet. Go through the whole word once for each merge, in the order
    of `merges`.
tuple(tokens[i : i + 2]) == pair -> tuple(tokens[i : i + 2]) == pair and pair not in zip(tokens[i + 1 :], tokens[i + 2 :])
    Each pair is merged where it occurs last. Merge it everywhere.
"""

CASES = (
    dict(tokens=[5, 6, 7], merges=[((5, 6), 10)]),
    dict(tokens=[7, 5, 6, 8], merges=[((5, 6), 10), ((7, 10), 11)]),
    dict(tokens=[4, 4, 4, 3], merges=[((4, 4), 10), ((4, 3), 11)]),  # overlapping
    dict(  # a pair in both orders
        tokens=[5, 5, 6, 6, 5, 7, 5, 6, 5, 6, 6], merges=[((6, 5), 10), ((5, 6), 11), ((5, 10), 12)]
    ),
    dict(tokens=[3, 8, 6, 8], merges=[((8, 8), 10)]),
    dict(tokens=[5, 6, 7], merges=[((5, 6), 10), ((6, 7), 11)]),
)
HINTS = """
For each merge walk through the tokens with an index. Where its pair begins, how far do you go on?
In 4 4 4, the first two are merged; the third has no partner left.
for pair, new in merges: a new list; while i < len(tokens): if tuple(tokens[i : i + 2]) == pair, append new and add 2
    to i; else append tokens[i] and add 1. Then go on with the new list.
"""
DIFFERENTIABLE = False  # fmt: skip
