"""BLEU of a corpus, from counts."""

import math

import torch

from course_lib.topics.bleu import brevity_penalty


def corpus_bleu(matched, total, candidate_length, reference_length):
    precision = matched.sum(dim=0) / total.sum(dim=0).clamp(min=1)  # (n,), of the whole corpus
    mean = precision.log().mean().exp()  # geometric; log 0 is -inf, and exp makes 0 of that
    shortness = reference_length.sum() / candidate_length.sum()
    return mean * torch.exp(1 - shortness).clamp(max=1.0)


def reference(matched, total, c, r):
    pairs = list(zip(matched.sum(0).tolist(), total.sum(0).tolist(), strict=True))
    if not all(right for right, _ in pairs):
        return torch.tensor(0.0)
    logs = [math.log(right / several) for right, several in pairs]
    return torch.tensor(
        brevity_penalty(c.sum().item(), r.sum().item()) * math.exp(sum(logs) / len(logs))
    )


def _corpus_case(matched, candidate_length, reference_length):
    """The totals follow from the lengths: a text of c tokens has c - n + 1 n-grams."""
    matched, c = torch.tensor(matched), torch.tensor(candidate_length)
    total = (c[:, None] - torch.arange(matched.shape[1])).clamp(min=0)
    return dict(
        matched=matched,
        total=total,
        candidate_length=c,
        reference_length=torch.tensor(reference_length),
    )


PRECISION = "matched.sum(dim=0) / total.sum(dim=0).clamp(min=1)"
MEAN = "precision.log().mean().exp()"
C, R = "candidate_length", "reference_length"
SHORTNESS = f"{R}.sum() / {C}.sum()"
PENALTY = "torch.exp(1 - shortness).clamp(max=1.0)"
MISTAKES = rf"""
{PRECISION} -> matched / total.clamp(min=1)
+ {MEAN} -> precision.log().mean(-1).exp()
+ {SHORTNESS} -> {R} / {C}
+ mean * {PENALTY} -> (mean * {PENALTY}).mean()
    You average the BLEU of sentences. A sentence without a matching 4-gram counts as 0, whatever else is right in it.
    Corpus BLEU adds up counts first.
{PRECISION} -> matched / total
+ {MEAN} -> precision.log().mean(-1).exp()
+ {SHORTNESS} -> {R} / {C}
+ mean * {PENALTY} -> (mean * {PENALTY}).mean()
    You average the BLEU of sentences, and where one has no n-gram, 0/0 is NaN. Corpus BLEU adds up counts first.
{PRECISION} -> (matched / total.clamp(min=1)).mean(dim=0)
    You average the precisions of sentences, so a word of a short sentence counts more. Add up the counts, then
    divide.
{PRECISION} -> (matched / total).mean(dim=0)
    You divide within each sentence, and where one has no n-gram, 0/0 is NaN. Add up the counts, then divide.
.clamp(min=1) ->
    Where no candidate has an n-gram of some order, the total is 0 and 0/0 is NaN. Such a precision is 0:
    total.clamp(min=1).
precision.log() -> ((precision > 0) * precision.log())
    Where a precision is 0, its log is minus infinity, and times 0, or minus itself, gives NaN. BLEU is 0.
precision.log() -> precision.log().nan_to_num(neginf=0.0)
    A precision of 0 counts as 1 in your mean, since its log is left out or set to 0. The geometric mean with a factor
    of 0 is 0.
precision.log() -> precision[precision > 0].log()
    You leave out precisions of 0, although the geometric mean of precisions with a 0 is 0: BLEU is 0.
precision.log() -> precision.clamp(min=1e-6).log()
precision.log() -> precision.clamp(min=1e-8).log()
precision.log() -> precision.clamp(min=1e-9).log()
precision.log() -> precision.clamp(min=1e-10).log()
precision.log() -> precision.clamp(min=1e-12).log()
    You replace a precision of 0 by a small number. Its root of order N is not small: with N = 4, the fourth root of
    1e-9 is 0.006. BLEU is 0 there.
{PRECISION} -> (matched.sum(dim=0) + 1) / (total.sum(dim=0) + 1)
    You add 1 to the counts. That is a smoothed BLEU, which some use for single sentences, and its scores cannot be
    compared with others. Leave the counts as they are.
{MEAN} -> precision.mean()
    You take the arithmetic mean, so many matching words make up for n-grams that never match. BLEU takes the
    geometric mean, exp of the mean of logs.
{MEAN} -> 1 / (1 / precision).mean()
    You take the harmonic mean. BLEU takes the geometric mean, exp of the mean of logs.
{MEAN} -> precision.prod()
    You add up the logs without weights, or multiply the precisions, so the score falls with every order that is
    added. Each log has the weight 1/N: take their mean.
{MEAN} -> precision[-1]
    You take the last precision alone. All orders count: take exp of the mean of their logs.
{MEAN} -> precision[0]
    You use single words only, so a shuffled sentence scores like the right one. All orders count.
{MEAN} -> precision.min()
    You take the smallest precision. All orders count: take exp of the mean of their logs.
{MEAN} -> precision.mean() * (precision > 0).all()
    Where no precision is 0, you take the arithmetic mean. BLEU takes the geometric mean, exp of the mean of logs.
{MEAN} -> precision.log().mean()
    You return the log of the mean. Take exp.
{MEAN} -> precision.prod() ** 0.25
    You always divide the sum of the logs by 4. The weight is 1/N, and N is the number of columns.
{MEAN} -> precision.prod().sqrt()
    You always take the square root of the product. The weight is 1/N, and N is the number of columns.
{MEAN} -> precision.log2().mean().exp()
{MEAN} -> precision.log10().mean().exp()
    Your logarithm has another base than exp. torch.log is the natural one.
precision.log().mean() -> (precision.log() / torch.arange(1, len(precision) + 1)).sum()
    Order n has the weight 1/n in your mean. All orders have the same weight: 1/N.
{PRECISION} -> matched.sum() / total.sum()
    You add up over the orders too, which makes one precision of all grams. Add up over sentences: dim=0.
sum(dim=0) => sum(dim=1)
    You add up over the orders, which makes a precision of each sentence. Add up over the sentences, dim=0: a
    precision of each order.
precision.log() -> precision[total.sum(dim=0) > 0].log()
    You leave out the orders without any n-gram. Here their precision is 0, and so is BLEU. (sacreBLEU can leave them
    out: eff:yes.)
{PRECISION} -> total.sum(dim=0) / matched.sum(dim=0).clamp(min=1)
    You divide the totals by the matches. A precision is matched / total.
mean * {PENALTY} -> mean
    The brevity penalty is missing: a few matching words get a perfect score.
{SHORTNESS} -> {C}.sum() / {R}.sum()
+ max=1.0 -> min=1.0
    The ratio in your brevity penalty is upside down: short candidates get a factor above 1. The exponent
    is 1 - r/c.
{SHORTNESS} -> {C}.sum() / {R}.sum()
1 - shortness -> shortness - 1
    Your brevity penalty penalises long candidates and not short ones. The exponent is 1 - r/c.
.clamp(max=1.0) ->
    Your brevity penalty rewards long candidates. It is at most 1.
max=1.0 -> min=1.0
    Your brevity penalty is at least 1: it rewards long candidates and does not penalise short ones. It is at most 1.
{SHORTNESS} -> {R} / {C}
+ {PENALTY} -> {PENALTY}.mean()
    You average the penalties of sentences, so a short one cannot be made up for by a long one. The lengths are those
    of the corpus: add them up first.
{SHORTNESS} -> {R} / {C}
+ {PENALTY} -> {PENALTY}.min()
    Your penalty is that of the sentence that is too short most. The lengths are those of the corpus: add them up
    first.
{SHORTNESS} -> {R} / {C}
    You have one penalty per sentence, so your result has the shape (sentences,). The lengths are those of the corpus:
    add them up first.
{SHORTNESS} -> ({R} / {C}).mean()
    You average the ratios of lengths over the sentences. The lengths are those of the corpus: add them up first.
{SHORTNESS} -> {R}.sum() // {C}.sum()
    You drop the fraction of r/c, so a corpus that is a little too short is not penalised. Divide with /.
torch.exp(1 - shortness) -> (1 / shortness)
    Your penalty is min(1, c/r). BLEU takes exp(1 - r/c), at most 1.
1 - shortness -> -shortness
    The 1 is missing in the exponent of your penalty. At equal lengths the exponent must be 0: 1 - r/c.
1 - shortness -> 1 / shortness - 1
    The exponent of your penalty is c/r - 1, which divides the missing words by the length of the references. BLEU
    divides them by that of the candidates: 1 - r/c.
1 - shortness -> {C}.sum() - {R}.sum()
    The exponent of your penalty is a difference of lengths, so one word in a thousand costs as much as one in two.
    Take their ratio: 1 - r/c.
torch.exp(1 - shortness) -> (1 - shortness)
    Your penalty lacks the exponential: exp(1 - r/c), at most 1.
return mean -> return 100 * mean
    Right, times 100, as papers report it. Here BLEU is from 0 to 1.
{PENALTY} -> {PENALTY}.reshape(1)
    Right, but in a tensor of one element. Return a number: a float, or a tensor of shape ().
"""

CASES = (
    _corpus_case([[4, 2], [5, 4]], [5, 9], [8, 8]),
    _corpus_case([[3, 0], [2, 0]], [4, 3], [4, 4]),  # not one pair is right
    _corpus_case([[2, 1, 0], [2, 1, 0]], [2, 2], [3, 2]),  # and not one triple exists
    _corpus_case(
        [[4, 3], [0, 0], [0, 0]], [4, 1, 1], [9, 2, 2]
    ),  # the precision of pairs is larger
    _corpus_case([[6, 4, 2], [9, 7, 5], [1, 0, 0]], [7, 12, 2], [7, 9, 3]),
    _corpus_case(
        [[9, 7, 5, 3], [5, 3, 1, 0], [4, 2, 1, 1], [8, 6, 5, 4]], [10, 7, 4, 9], [12, 8, 9, 8]
    ),
)
HINTS = """
What is added up before anything is divided?
matched.sum(dim=0) / total.sum(dim=0).clamp(min=1): a precision for each n. Then exp of the mean of logs.
Times torch.exp(1 - reference_length.sum() / candidate_length.sum()).clamp(max=1.0).
"""
DIFFERENTIABLE = False
