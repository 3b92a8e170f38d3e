"""BLEU against sacreBLEU, the example of its authors, and by hand."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.topics.bleu import bleu, brevity_penalty, modified_precision

drawn = settings(max_examples=120)


@st.composite
def corpora(draw):
    """Candidates, and as many references for each; few words, so that n-grams repeat."""
    word = st.sampled_from("ab" if draw(st.booleans()) else "abcde")
    reference = st.lists(word, min_size=1, max_size=10)
    sentences, several = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    references = [[draw(reference) for _ in range(several)] for _ in range(sentences)]
    candidates = []
    for one in references:
        text = draw(st.lists(word, max_size=10))
        if draw(st.booleans()):  # a reference, part of it, or with one word more
            text = one[0][draw(st.integers(0, 2)) :] + draw(st.sampled_from([[], ["a"]]))
        candidates.append(text)
    return candidates, references


def sacrebleu_of(candidates, references, max_n=4):
    """Their score object; they number the references first and the sentences then."""
    from sacrebleu.metrics import BLEU

    metric = BLEU(
        tokenize="none", smooth_method="none", force=True, max_ngram_order=max_n,
        effective_order=False,
    )  # fmt: skip
    flipped = [[" ".join(one[place]) for one in references] for place in range(len(references[0]))]
    return metric.corpus_score([" ".join(text) for text in candidates], flipped)


@pytest.mark.verifies("course_lib.topics.bleu.bleu", against="sacreBLEU, without smoothing")
@pytest.mark.verifies("course_lib.topics.bleu.modified_precision", against="sacreBLEU's precisions")
@pytest.mark.verifies("course_lib.topics.bleu.brevity_penalty", against="sacreBLEU's `bp`")
@drawn
@given(corpus=corpora(), max_n=st.integers(1, 4))
def test_bleu_and_its_parts_are_those_of_sacrebleu(ledger, corpus, max_n):
    theirs = sacrebleu_of(*corpus, max_n)
    assert abs(bleu(*corpus, max_n=max_n) - theirs.score / 100) < 1e-9
    if max_n == 4:
        assert bleu(*corpus) == bleu(*corpus, max_n=4)
    for n, correct, total in zip(range(1, 5), theirs.counts, theirs.totals, strict=False):
        assert modified_precision(*corpus, n) == (correct / total if total else 0.0)
    assert abs(brevity_penalty(theirs.sys_len, theirs.ref_len) - theirs.bp) < 1e-12
    ledger.holds()


def text(words):
    return words.lower().replace(".", "").split()


MAT = [text("The cat is on the mat."), text("There is a cat on the mat.")]
#: The paper's first two candidates, their references, and its example 3 with its precisions.
FIRST = text("It is a guide to action which ensures that the military always obeys the commands of the party.")  # fmt: skip
SECOND = text(
    "It is to insure the troops forever hearing the activity guidebook that party direct."
)
GUIDES = [
    text("It is a guide to action that ensures that the military will forever heed Party commands."),
    text("It is the guiding principle which guarantees the military forces always being under the command of the Party."),
    text("It is the practical guide for the army always to heed the directions of the party."),
]  # fmt: skip


@pytest.mark.verifies(
    "course_lib.topics.bleu.modified_precision",
    against="the examples of Papineni and others (2002)",
)
def test_the_examples_of_the_paper(ledger):
    assert modified_precision([["the"] * 7], [MAT], 1) == 2 / 7
    assert modified_precision([["the"] * 7], [MAT], 2) == 0.0
    assert modified_precision([FIRST], [GUIDES], 1) == 17 / 18
    assert modified_precision([SECOND], [GUIDES], 1) == 8 / 14
    assert modified_precision([FIRST], [GUIDES], 2) == 10 / 17
    assert modified_precision([SECOND], [GUIDES], 2) == 1 / 13
    ledger.holds()


def test_the_nearest_reference_counts_and_of_two_the_shorter():
    word = ["a"] * 6
    near = [["a"] * 4, ["a"] * 8, ["a"] * 20]  # both two away: 4 counts, so nothing is taken off
    assert bleu([word], [near], max_n=1) == 1.0
    assert bleu([word], [near[1:]], max_n=1) == pytest.approx(math.exp(1 - 8 / 6))
    assert bleu([word], [[["a"] * 8, ["a"] * 3]], max_n=1) == pytest.approx(math.exp(1 - 8 / 6))


@pytest.mark.verifies("course_lib.topics.bleu.bleu", against="weights worked out by hand")
def test_weights_by_hand(ledger):
    candidate, reference = [["a", "b", "c", "e"]], [[["a", "b", "c", "d"]]]
    p1, p2, p3 = 3 / 4, 2 / 3, 1 / 2
    for weights in itertools.product((0, 0.25, 0.5, 1.0), repeat=3):
        if sum(weights) == 1:
            wanted = p1 ** weights[0] * p2 ** weights[1] * p3 ** weights[2]
            assert bleu(candidate, reference, 3, list(weights)) == pytest.approx(wanted, abs=1e-12)
    assert bleu(candidate, reference, 2) == pytest.approx(math.sqrt(p1 * p2), abs=1e-12)
    assert bleu(candidate, reference) == 0.0  # no four in a row
    assert bleu(candidate, reference, 4, (0.5, 0.5, 0, 0)) == bleu(candidate, reference, 2)
    ledger.holds()


C, R = [["a", "b"]], [[["a", "b"]]]


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: bleu(C * 2, R), r"there are 2 candidates and 1 lists of references"),
        (lambda: bleu(C, [[]]), r"references\[0\] is \[\]; it must be a list of texts"),
        (lambda: bleu(C * 2, [*R, ["a b"]]), r"sentence 1 has the text 'a b'; a text must be a list of tokens"),
        (lambda: bleu([torch.tensor([1, 2])], R), r"sentence 0 has the text tensor"),
        (lambda: bleu(C, R, 2, [0.5, 0.4]), r"weights=\[0\.5, 0\.4\] must be max_n=2 numbers, 0 or more, that sum to 1"),
        (lambda: bleu(C, R, 2, [1.5, -0.5]), r"0 or more"),
        (lambda: modified_precision(C, R, 0), r"n=0 is below 1"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_the_numbers_that_notebook_09_quotes_are_those_of_sacrebleu():
    from sacrebleu.metrics import BLEU, CHRF

    reference = "the cat does not see the small dog in the garden ."
    article = "the cat does not see a small dog in the garden ."
    exchanged = "the dog does not see the small cat in the garden ."
    paraphrase = "in the garden a little dog escapes the eyes of the cat ."
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    theirs = metric.corpus_score([article, exchanged], [[reference, reference]])
    assert f"{theirs.score:.4f}" == "65.6592"
    texts = (article, exchanged, paraphrase)
    scores = [CHRF().corpus_score([one], [[reference]]).score for one in texts]
    assert [f"{score:.2f}" for score in scores] == ["85.62", "76.03", "43.45"]
    metric = BLEU()
    metric.corpus_score([article], [[reference]])
    signature = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
    assert str(metric.get_signature()) == signature
