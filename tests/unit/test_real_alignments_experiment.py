"""The experiment behind study 12b: cross-attention as an aligner of real sentences."""

import json
import math
from collections import Counter

import pytest
import torch

from course_lib.data.subwords import Subwords
from course_lib.experiments import real_alignments as experiment
from course_lib.topics.attention_maps import record_attention
from course_lib.train.folder import RunFolder, write_weights
from course_lib.train.settings import Settings
from course_lib.transformer import Transformer

PAIRS = [
    ("A dog runs.", "Ein Hund rennt."),
    ("A black dog sleeps.", "Ein schwarzer Hund schläft."),
    ("A man sleeps.", "Ein Mann schläft."),
    ("The man runs.", "Der Mann rennt."),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run that was never trained, and the text for it."""
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    settings = Settings(vocabulary=290, d_model=16, heads=2, layers=3, d_ff=16, steps=1)
    folder.start(settings, Subwords.learned([text for pair in PAIRS for text in pair], 290))
    torch.manual_seed(0)
    write_weights(Transformer(settings.model_config(290)), folder.model)
    for split in ("train", "val", "test"):
        for number, language in enumerate(("en", "de")):
            lines = "".join(f"{pair[number]}\n" for pair in PAIRS)
            (folder.path / f"{split}.{language}").write_text(lines, encoding="utf-8")
    return folder


def test_every_token_belongs_to_the_word_that_it_ends_in():
    text = "Zwei süße Hunde, „blau-weiß“."
    subwords = Subwords.learned(["Zwei Hunde blau“. “. “."], 280)
    words, tokens = experiment.Words.of(text).words, subwords.tokens(text)
    assert words == ["Zwei", "süße", "Hunde", ",", "„", "blau-weiß", "“."]
    found = experiment.word_of_tokens(subwords, text)
    assert len(found) == len(tokens) and found == sorted(found) and set(found) == set(range(7))
    for number, word in enumerate(words):
        ids = subwords.encode(text)[[n for n, of in enumerate(found) if of == number]]
        assert subwords.decode(ids) == word


def test_a_map_of_words_adds_source_tokens_and_averages_target_tokens():
    weights = torch.tensor([[0.1, 0.2, 0.7], [0.5, 0.3, 0.2], [0.0, 0.6, 0.4], [0.2, 0.2, 0.6]])
    found = experiment.word_map(weights, source=[0, 0, 1], target=[0, 1, 1, 1])
    wanted = torch.tensor([[0.3, 0.7], [(0.8 + 0.6 + 0.4) / 3, (0.2 + 0.4 + 0.6) / 3]])
    torch.testing.assert_close(found, wanted)


def test_maps_are_those_of_the_row_that_generates_or_reads_a_token(folder):
    translator = folder.translator()
    subwords = translator.subwords
    maps = list(experiment.word_maps(translator, PAIRS))[1]  # padded in the batch
    source = subwords.encode(PAIRS[1][0], eos=True)[None]
    target = subwords.encode(PAIRS[1][1], bos=True)[None]
    with record_attention(translator.model) as recorded:
        translator.model(source, target)
    (weights,) = recorded["decoder.2.cross_attention"]
    cut = [experiment.word_of_tokens(subwords, text) for text in PAIRS[1]]
    for row, rows in (("generates", slice(None, -1)), ("reads", slice(1, None))):
        wanted = experiment.word_map(weights[0, 1, rows, :-1], *cut)
        torch.testing.assert_close(maps["layer 2, head 1", row], wanted)
    layers = [maps[f"layer {n}, mean", "reads"] for n in range(3)]
    torch.testing.assert_close(maps["all layers, mean", "reads"], torch.stack(layers).mean(dim=0))
    assert len(maps) == 2 * (3 * 3 + 1)


def test_model_1_is_em_by_hand():
    """As study 08a writes it, with a dense table."""
    aligner = experiment.Aligner(PAIRS)
    aligner.learn(3, offsets=False)
    english, german = (list(ids) for ids in aligner._ids)
    t = torch.ones(len(german), len(english))
    for _ in range(3):
        counts = torch.zeros_like(t)
        for pair in PAIRS:
            source, target = ([w.lower() for w in experiment.Words.of(x).words] for x in pair)
            e = [english.index(word) for word in source]
            for word in target:
                f = german.index(word)
                for one in e:
                    counts[f, one] += t[f, one] / t[f, e].sum()
        t = counts / counts.sum(dim=0)
    for key, probability in zip(aligner._keys.tolist(), aligner.t.tolist(), strict=True):
        f, e = divmod(key, len(english))
        assert probability == pytest.approx(t[f, e].item(), abs=1e-6)
    assert t[german.index("mann"), english.index("man")] > 0.4
    assert experiment.Aligner(PAIRS).links(PAIRS[0]) == {(0, j) for j in range(4)}  # nothing learnt


def test_offsets_break_ties_and_unknown_words_follow_them():
    aligner = experiment.Aligner([(f"{a} {b}", f"{a}x {b}x") for a in "pq" for b in "rs"])
    aligner.learn(3, offsets=False)
    aligner.learn(3, offsets=True)
    assert aligner.a.sum().item() == pytest.approx(1)
    assert aligner.a.argmax().item() == experiment.LONGEST  # i = j
    assert aligner.links(("p new", "px unseen")) == {(0, 0), (1, 1)}
    long = " ".join("p" * 70), " ".join(["px"] * 70)
    assert len(aligner.links(long)) == 70


def test_a_word_that_only_null_explains_has_no_link():
    pairs = [(f"{a} {b}", f"{a}x ja {b}x") for a in "pqrs" for b in "tuvw"]
    for null in (False, True):
        aligner = experiment.Aligner(pairs, null=null)
        aligner.learn(5, offsets=False)
        aligner.learn(15, offsets=True)
        assert aligner.a.sum().item() == pytest.approx(1)
        links = aligner.links(("p t", "px ja tx"))
        assert {(0, 0), (1, 2)} <= links and len(links) == 3 - null


def test_the_diagonal_aligner_is_expected_counts_in_plain_python():
    """As Dyer, Chahuneau and Smith (2013) write it; λ is read from the aligner, and is the best for its last table."""
    texts = [
        ("a b", "A B C"),
        ("b c d a", "B C"),
        ("c a", "C D A"),
    ]
    aligner = experiment.DiagonalAligner(texts)
    pairs = [(source.split(), target.lower().split()) for source, target in texts]

    def digamma(x):
        return (math.lgamma(x * 1.0001) - math.lgamma(x / 1.0001)) / (x * (1.0001 - 1 / 1.0001))

    def prior(i, j, n, m, sharpness):  # positions from 1
        near = [math.exp(-sharpness * abs(j / m - k / n)) for k in range(1, n + 1)]
        return 0.92 * near[i - 1] / sum(near)

    t: dict = {}
    for _ in range(3):
        sharpness, counts, likelihood = aligner.sharpness, Counter(), []
        for source, target in pairs:
            n, m = len(source), len(target)
            for j, f in enumerate(target, 1):
                links = [("NULL", 0.08)]
                links += [(e, prior(i, j, n, m, sharpness)) for i, e in enumerate(source, 1)]
                shares = [t.get((f, e), 1) * p for e, p in links]
                shares = [share / sum(shares) for share in shares]
                for (e, _), share in zip(links, shares, strict=True):
                    counts[f, e] += share
                likelihood += [(q, i, j, n, m) for i, q in enumerate(shares) if i]
        counts = {key: count + 0.01 for key, count in counts.items()}
        total = Counter()
        for (_, e), count in counts.items():
            total[e] += count
        t = {(f, e): math.exp(digamma(c) - digamma(total[e])) for (f, e), c in counts.items()}
        aligner.learn(1)
        english, german = (list(ids) for ids in aligner._ids)
        for key, found in zip(aligner._keys.tolist(), aligner.t.tolist(), strict=True):
            f, e = divmod(key, len(english))
            assert found == pytest.approx(t[german[f], english[e]], rel=1e-3, abs=1e-9)

    def fit(sharpness):
        return sum(q * math.log(prior(*place, sharpness)) for q, *place in likelihood)

    assert aligner.sharpness != sharpness
    best = max((n / 100 for n in range(10, 2001)), key=fit)
    assert aligner.sharpness == pytest.approx(best, abs=0.3)


def test_columns_are_the_other_direction():
    weights = torch.tensor([[0.9, 0.4, 0.3], [0.1, 0.6, 0.7]])  # (target, source)
    assert experiment.columns_of(weights) == {(0, 0), (1, 1), (2, 1)}
    rows = experiment.strongest_links(weights)
    assert experiment.combined(rows, experiment.columns_of(weights)) == {
        "rows": {(0, 0), (2, 1)},
        "columns": {(0, 0), (1, 1), (2, 1)},
        "both": {(0, 0), (2, 1)},
        "grown": {(0, 0), (1, 1), (2, 1)},
    }


def test_growing_adds_neighbours_of_words_without_a_link():
    rows, columns = {(0, 0), (5, 3), (1, 1)}, {(0, 0), (0, 1), (2, 1), (7, 7)}
    # (0, 1) is beside (0, 0) and its target word is free; then (1, 1) and (2, 1), whose source words are free.
    assert experiment.grown(rows, columns) == {(0, 0), (0, 1), (1, 1), (2, 1)}
    assert experiment.grown({(3, 0)}, {(0, 3)}) == set()


def test_agreement_is_an_f1_score():
    links = [{(0, 0), (1, 1), (2, 2)}, {(0, 0)}]
    assert experiment.compared(links, [{(0, 0)}, set()])["agrees"] == pytest.approx(0.5)


def test_the_annotators_links_are_of_fifty_sentences_and_sure_ones_are_possible():
    assert len(experiment.gold()) == 50 and max(experiment.gold()) < 1000
    for sure, possible in experiment.gold().values():
        assert sure and sure <= possible


def test_the_error_rate_is_that_of_the_phrasebook():
    links, sure, possible = {(0, 0), (1, 1), (2, 1)}, {(0, 0), (1, 2)}, {(0, 0), (1, 2), (1, 1)}
    counts = experiment.agreement(links, sure, possible)
    assert counts == [1, 2, 3, 2]
    assert experiment.error_rate(torch.tensor(counts)).item() == pytest.approx(1 - 3 / 5)


def test_the_command_records_a_run(folder, tmp_path):
    path = tmp_path / "record.json"
    folder.weights(7).write_bytes(folder.model.read_bytes())
    measured = [
        {"step": step, "bleu": 12.5} for step in (7, 14)
    ]  # the weights of the second are gone
    folder.result.write_text(json.dumps({"measured": measured}))
    options = ["--data", str(folder.path), "--record", str(path), "--during", str(folder.path)]
    experiment.main([*options, f"new={folder.path}"])
    record = json.loads(path.read_text())
    (moment,) = record["during"]
    assert (moment["step"], moment["BLEU"]) == (7, 12.5)
    for name, (agrees, rate) in moment["candidates"].items():
        one = record["runs"]["new"]["generates"][name]["rows"]
        assert agrees == one["agrees"]
        assert rate == pytest.approx(
            experiment.error_rate(torch.tensor(one["gold"][0])).item(), abs=1e-4
        )
    baselines = {"random", "diagonal"}
    learners = {"IBM model 1", "offsets and NULL", "like fast_align"}
    assert set(record["aligners"]) == baselines | learners
    for name, directions in record["aligners"].items():
        assert set(directions) == ({"rows"} if name in baselines else set(experiment.DIRECTIONS))
    assert all(one["agrees"] == 1 for one in record["aligners"][experiment.REFERENCE].values())
    rows = record["runs"]["new"]
    assert set(rows) == set(experiment.ROWS)
    for row, candidates in rows.items():
        assert len(candidates) == 10
        for one in candidates.values():
            assert 0 < one.pop("on words") < 1
            assert len(one) == (4 if row == "generates" else 1)
            for direction in one.values():
                assert 0 <= direction["agrees"] <= 1
                assert len(direction["gold"]) == 1  # number 1 of the first four
    whole = path.read_text()
    path.write_text(json.dumps({**json.loads(whole), "aligners": {}}))
    experiment.main(options[:4])  # no run: the aligners alone
    assert json.loads(path.read_text()) == json.loads(whole)


def test_the_record_is_whole():
    record = experiment.recorded()
    runs = [one for rows in record["runs"].values() for one in rows.values()]
    for candidates in [record["aligners"], *runs]:
        for directions in candidates.values():
            for name in set(directions) - {"on words"}:
                rows = torch.tensor(directions[name]["gold"])
                assert rows.shape == (50, 4)
                assert rows[:, 3].tolist() == [len(s) for s, _ in experiment.gold().values()]
