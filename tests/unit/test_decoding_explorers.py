"""The explorers of notebook 09: the next token, beam search as a tree, BLEU of one sentence."""

import itertools
import math
import warnings
from collections import Counter

import numpy as np
import pytest
import torch

from course_lib.checkpoints import phrase_translator
from course_lib.data import phrases, table_model
from course_lib.topics.bleu import bleu
from course_lib.transformer.decoding import beam_search
from course_lib.widgets import (
    beam_explorer,
    bleu_explorer,
    next_token_explorer,
    search_tree,
)
from course_lib.widgets.explorer import probability
from course_lib.widgets.search_tree import grow
from tests.helpers.decoding import TABLE
from tests.helpers.explorers import fact, move, panels, values_of

TEXT = "are you tired?"

# --- the next token --------------------------------------------------------------------------


def by_hand(z, temperature, top_k, top_p):
    """Probabilities before and after, in float64 and in order of rank; 0 where removed."""
    z = z.double().numpy()
    before = np.exp(z) / np.exp(z).sum()
    after = np.exp(z / temperature)
    after /= after.sum()
    ranked = np.argsort(-after, kind="stable")
    if top_k:
        after[ranked[top_k:]] = 0
        after /= after.sum()
    if top_p < 1:
        total = 0.0
        for place in ranked:
            if total >= top_p:
                after[place] = 0
            total += after[place]
        after /= after.sum()
    return before, after


FILTERS = itertools.product((0.35, 1.0, 2.5), (0, 1, 5), (0.2, 0.75, 1.0))


def test_bars_are_the_probabilities_before_and_after_of_what_the_translator_writes(
    without_annotations,
):
    translator = phrase_translator()
    names, words = translator.target.tokens, translator.words(TEXT)
    (french,) = translator.all([words])
    explorer = next_token_explorer(translator, TEXT)
    (bars,) = panels(explorer)
    source, end = translator.source.encode(words)[None], len(french) + 1
    for position, (temperature, top_k, top_p) in zip(itertools.cycle(range(end)), FILTERS):
        move(explorer, position=position, temperature=temperature, top_k=top_k, top_p=top_p)
        start = [1, *translator.target.encode(french[:position]).tolist()] if position else [1]
        with torch.no_grad():
            z = translator.model(source, torch.tensor([start]))[0, -1]
        before, after = by_hand(z, temperature, top_k, top_p)
        most = np.argsort(-before, kind="stable")[:12]
        assert bars.names[0] == names[most[0]] == [*french, "<eos>"][position]
        np.testing.assert_allclose(bars.before, before[most], atol=1e-5)
        np.testing.assert_allclose(bars.values, after[most], atol=1e-5)
        np.testing.assert_array_equal(bars.removed, after[most] == 0)
        np.testing.assert_allclose(values_of(*bars.hover())[:, 0], after[most], atol=1e-5)
        count = f"{position} token{'s' * (position > 1)}, {' '.join(french[:position])!r}"
        assert fact(explorer, "generated") == (count if position else "nothing yet")
        kept = after[after > 0]
        nats = fact(explorer, "entropy").removesuffix(" after").split(" nats before, ")
        entropies = [-(p * np.log(p)).sum() for p in (before, kept)]
        assert list(map(float, nats)) == pytest.approx(entropies, abs=6e-4)
        assert fact(explorer, "left") == f"{len(kept)} of {len(names)} tokens"
    explorer.choose(position=end - 1)
    last = explorer.picture.png
    explorer.choose(position=63)
    assert explorer.picture.png == last, "beyond the text is its end"


def test_what_is_improbable_is_not_said_to_be_impossible():
    said = [probability(p) for p in (0.9991, 0.0009, 0.000006)]
    assert said == ["0.999", "0.0009", "<0.0001"]


def test_removed_bars_are_hatched_and_the_others_pale_and_filled():
    (bars,) = panels(next_token_explorer(phrase_translator(), TEXT, top_k=5))
    wanted = {bars._pale: bars.before[:5], bars._crossed: bars.before[5:]}
    for drawn, values in (wanted | {bars._filled: bars.values[:5]}).items():
        lengths = [path.vertices[:, 0].max() ** 2 for path in drawn.get_paths()]
        np.testing.assert_allclose(lengths, values)
    assert bars._crossed.get_hatch() and not bars._pale.get_hatch()
    words, before, after = bars._words.words, *map(list, (bars.before, bars.values))
    for p, q in zip(before[:5], after[:5], strict=True):
        same = probability(p) == probability(q)
        assert (probability(p) if same else f"{probability(p)} → {probability(q)}") in words
    assert f"{probability(before[5])} → removed" in words


# --- models by prefix ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_a_translator_by_prefix_searches_as_the_translator_does(seed, without_annotations):
    translator = phrase_translator()
    for phrase in phrases(3, seed=seed):
        source = translator.source.encode(phrase.english)[None]
        explorer = beam_explorer(translator, " ".join(phrase.english))
        for beam_size, penalty in ((1, 1.0), (4, 0.0), (5, 1.5)):
            steps = []
            best = beam_search(
                translator.model, source, beam_size, penalty, max_length=24, callback=steps.append
            )
            explorer.choose(beam_size=beam_size, length_penalty=penalty, step=len(steps))
            assert fact(explorer, "step") == f"{len(steps)} of {len(steps)}"
            words = " ".join([*translator.target.decode(best.tokens[0, 0]), "<eos>"])
            line = fact(explorer, "best complete hypothesis")
            assert line.startswith(f"{words!r} (")
            score = float(line.split("score ")[1])
            assert score == pytest.approx(best.scores[0, 0].item(), abs=6e-4)


# --- the tree --------------------------------------------------------------------------------


def tree_by_hand(table, beam_size, length_penalty, longest):
    """Candidates of each step as {sentence: (probability, kind)}, by plain search over tuples."""
    beam, done, steps = {(): 1.0}, [], []
    for length in range(1, longest + 1):
        candidates = {}
        for text, p in beam.items():
            for word, q in table.get(text, {"<eos>": 1.0}).items():
                candidates[*text, word] = p * q
        ranked = sorted(candidates, key=lambda one: -candidates[one])[: 2 * beam_size]
        kinds, going_on = {}, []
        for rank, text in enumerate(ranked):
            if text[-1] == "<eos>":
                kinds[text] = "complete" if rank < beam_size else "dropped"
                if rank < beam_size:
                    done.append(math.log(candidates[text]) / length**length_penalty)
            else:
                kinds[text] = "kept" if len(going_on) < beam_size else "dropped"
                going_on += [text] if len(going_on) < beam_size else []
        steps.append({text: (candidates[text], kinds[text]) for text in ranked})
        beam = {text: candidates[text] for text in going_on}
        best = sorted(done, reverse=True)[:beam_size]
        hope = max(
            (math.log(p) / longest**length_penalty for p in beam.values()), default=-math.inf
        )
        if not beam or (beam_size == 1 and done) or (len(best) == beam_size and hope <= best[-1]):
            return steps
    return steps


@pytest.mark.parametrize(("beam_size", "penalty"), [(1, 1.0), (2, 0.0), (3, 2.0), (5, 1.0)])
def test_the_tree_is_that_of_a_search_by_hand(beam_size, penalty, monkeypatch):
    explorer = beam_explorer(TABLE, beam_size=beam_size, length_penalty=penalty)
    (panel,) = panels(explorer)
    seen, update = {}, panel.update

    def spy(columns, rows, parents, kinds, words, notes, **more):
        seen.update(rows=rows, parents=parents, kinds=kinds, words=words)
        update(columns, rows, parents, kinds, words, notes, **more)

    def text(node):
        before = seen["parents"][node]
        return (*(text(before) if before > 0 else ()), seen["words"][node])

    monkeypatch.setattr(panel, "update", spy)
    wanted, complete = tree_by_hand(TABLE, beam_size, penalty, 3), {}
    for last in range(1, len(wanted) + 1):
        explorer._update(step=last, beam_size=beam_size, length_penalty=penalty, text=None)
        every = {line: one for step in wanted[:last] for line, one in step.items()}
        nodes = range(1, len(seen["words"]))
        assert [text(node) for node in nodes] == list(every), "by step, then by rank"
        assert seen["rows"][1:] == [rank for step in wanted[:last] for rank in range(len(step))]
        drawn = panel.data()
        assert drawn["step"][1:].tolist() == [len(line) for line in every]
        logs = [math.log(p) for p, _ in every.values()]
        np.testing.assert_allclose(drawn["log-probability"][1:], logs, atol=1e-5)
        assert seen["kinds"][1:] == [kind for _, kind in every.values()]
        shares = [p / every.get(line[:-1], (1.0, ""))[0] for line, (p, _) in every.items()]
        np.testing.assert_allclose(drawn["share"][1:], shares, rtol=1e-4)
        for line, (p, kind) in wanted[last - 1].items():
            if kind == "complete":
                complete[line] = math.log(p) / last**penalty
        best = max(complete, key=complete.get) if complete else ()
        assert [seen["words"][node] for node in drawn["path"]] == list(best)
        under = values_of(*panel.hover())[drawn["row"], drawn["step"]]
        np.testing.assert_allclose(under, drawn["log-probability"], atol=1e-5)
        assert np.isfinite(values_of(*panel.hover())).sum() == len(seen["words"])
    assert values_of(*panel.hover()).shape[1] == 4, "the start and 3 steps fill the picture"


@pytest.mark.parametrize("beam_size", range(1, 6))
def test_equally_probable_prefixes_keep_their_own_children(beam_size):
    even = {(word,): {f"{word}{n}": 0.5 for n in (1, 2)} for word in "abcd"}
    model, vocabulary = table_model({(): dict.fromkeys("abcd", 0.25)} | even)
    steps = []
    beam_search(model, torch.tensor([[1]]), beam_size, callback=steps.append)
    nodes = grow(steps, vocabulary.tokens)
    for node in nodes:
        assert node.step != 2 or node.token[0] == nodes[node.parent].token


def test_looks_tell_what_is_kept_dropped_complete_and_best():
    explorer = beam_explorer(TABLE, beam_size=2, length_penalty=0.0)
    (panel,) = panels(explorer)
    words = panel._words.words
    nodes = words[: len(panel.columns)]
    assert nodes == "start the a one bird cat dog bird <eos> <eos>".split()
    fills = [tuple(np.round(colour, 3)) for colour in panel._nodes.get_facecolor()]
    kept, dropped, complete = fills[1], fills[3], fills[-1]
    assert dropped == (1, 1, 1, 1) and len({kept, dropped, complete}) == 3
    assert fills == [kept] * 3 + [dropped] + [kept] * 2 + [dropped] * 2 + [complete] * 2
    corners = [len(np.unique(path.vertices, axis=0)) for path in panel._nodes.get_paths()]
    assert corners == [8] * 8 + [4] * 2
    wide = np.array(panel._nodes.get_linewidth()) > 2
    assert [nodes[n] for n in np.flatnonzero(wide)] == ["a", "bird", "<eos>"]
    shares = np.array([0.5, 0.4, 0.1, 0.9, 0.4, 0.35, 0.25, 1, 1])
    np.testing.assert_allclose(panel._lines.get_linewidth(), 0.6 + 4.4 * shares, rtol=1e-4)
    assert "step 3" in words and "0.360" in words and "step 4" not in words


def test_no_more_than_forty_are_drawn_and_each_with_its_parent():
    explorer = beam_explorer(phrase_translator(), TEXT, beam_size=5, length_penalty=1.0)
    (panel,) = panels(explorer)
    for step in (1, 2, 7, 8, 9):
        explorer.choose(step=step)
        count = np.count_nonzero(panel.columns)
        assert count <= 40
        first = max(0, panel.columns.max() - 7)
        assert panel.columns.min() == first, "the last eight columns"
        orphans = len(panel.columns) - len(panel._lines.get_segments())
        assert orphans == np.count_nonzero(panel.columns == first)
        assert fact(explorer, "shown").startswith(f"{count} of ")
        newest = panel.columns == panel.columns.max()
        assert newest.sum() == 10, "all candidates of the newest step"


def test_the_step_does_not_search_anew_and_a_trained_model_does(monkeypatch):
    translator, calls, search = phrase_translator(), [], search_tree.beam_search
    explorer = beam_explorer(translator, TEXT)
    monkeypatch.setattr(
        search_tree, "beam_search", lambda *args, **more: calls.append(1) or search(*args, **more)
    )
    move(explorer, step=1).controls["step"].value = 3
    assert not calls
    move(explorer, beam_size=4)
    assert len(calls) == 1
    with torch.no_grad():
        next(translator.model.parameters()).mul_(1.0)  # as an optimizer would touch it
    move(explorer, step=4)
    assert len(calls) > 1


# --- BLEU ------------------------------------------------------------------------------------

SENTENCES = (
    ("the the the cat sat on the mat", "the cat is sitting on the mat"),
    ("the the the the the the the", "the cat is on the mat | there is a cat on the mat"),
    ("of the", "of the people by the people"),
    ("a b a b a b", "a b a b c | b a b a"),
    ("a b c d", "a b c | a b c d e"),
)


def runs(text, n):
    return [tuple(text[i : i + n]) for i in range(len(text) - n + 1)]


@pytest.mark.parametrize("candidate, reference", SENTENCES)
def test_bleu_is_drawn_as_the_library_and_a_count_by_hand_have_it(candidate, reference):
    explorer = bleu_explorer(candidate, reference)
    top, bars = panels(explorer)
    words, references = candidate.split(), [one.split() for one in reference.split("|")]
    for n in (1, 2, 3, 4):
        move(explorer, n=n)
        mine, theirs = runs(words, n), [runs(one, n) for one in references]
        most = {run: max(one.count(run) for one in theirs) for run in mine}
        counted = sum(min(mine.count(run), count) for run, count in most.items())
        kinds = Counter(top.kinds)
        assert kinds["counted"] == counted and kinds.total() == len(mine)
        assert [kind == "missing" for kind in top.kinds] == [most[run] == 0 for run in mine]
        assert len(set(top.links)) == len({one[1:] for one in top.links}) == counted
        for start, row, there in top.links:
            assert mine[start] == theirs[row - 1][there] and top.kinds[start] == "counted"
        counts = [[one.count(run) for run in mine] for one in (mine, *theirs)]
        np.testing.assert_array_equal(
            top.counts[:, : len(mine)], np.reshape(counts, (len(references) + 1, len(mine)))
        )
        assert np.isnan(top.counts[:, len(mine) :]).all()
        assert bars.values[n - 1] == pytest.approx(counted / max(len(mine), 1))
    score = bleu([words], [references])
    nearest = min((abs(len(one) - len(words)), len(one)) for one in references)[1]
    brevity = min(1, math.exp(1 - nearest / len(words)))
    assert bars.values[4:] == pytest.approx([brevity, score])
    assert score == pytest.approx(brevity * np.prod(bars.values[:4]) ** 0.25)
    np.testing.assert_allclose(values_of(*bars.hover())[:, 0], bars.values, rtol=1e-6)
    np.testing.assert_array_equal(values_of(*top.hover()), top.counts)


# --- all three -------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["$x$", "é ñ", "", "_^\\", "ééé" * 9])
def test_odd_words_are_drawn(word):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        beam_explorer({(): {"a": 0.5, word or "w": 0.5}}).picture.figure.svg()
        bleu_explorer(f"a {word} b", f"a {word}")


BAD = [
    (beam_explorer, [3], "source is a int"),
    (beam_explorer, [TABLE, "a"], "text needs source"),
    (beam_explorer, [phrase_translator()], "give a text"),
    (beam_explorer, [{(): {"b": 0.5}}], r"after \(\) sum to 0.5"),
    (bleu_explorer, ["a", "a |"], "both sides"),
    (bleu_explorer, ["a", "a|b|c|d"], "4 references"),
]


@pytest.mark.parametrize(("make", "given", "words"), BAD)
def test_what_cannot_be_drawn_is_named(make, given, words, without_annotations):
    with pytest.raises(ValueError, match=words):
        make(*given)
