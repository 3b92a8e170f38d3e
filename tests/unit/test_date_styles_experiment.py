"""The experiment of study 03c: which formats of dates go wrong, and what follows a first mistake."""

import pytest
import torch
import torch.nn.functional as F

from course_lib.data import DATE_STYLES, date_vocabularies
from course_lib.data.dates import is_held_out
from course_lib.experiments import bottleneck, date_styles
from course_lib.topics.recurrent import GRUEncoder, Seq2Seq

pytestmark = pytest.mark.usefixtures("without_annotations")


def small():
    torch.manual_seed(5)
    characters, iso = date_vocabularies()
    return Seq2Seq(GRUEncoder(len(characters), 32, 16), bottleneck.DECODERS["Bahdanau"](len(iso)))


def test_each_format_of_training_is_tested_on_the_same_held_out_days():
    tests = date_styles.tests()
    assert len(tests) == len(DATE_STYLES) - 1 == 48 and "de long" not in tests
    days = {tuple(one.iso for one in dates) for dates in tests.values()}
    assert len(days) == 1 and len(set(*days)) == date_styles.DAYS
    assert all(is_held_out(day) for day in date_styles.days(True, 50))
    assert not any(is_held_out(day) for day in date_styles.days(False, 50))


def test_the_further_dates_are_swedish_and_their_text_is_the_target():
    characters, iso = date_vocabularies()
    sources, targets = date_styles.training_pairs(40)
    assert len(sources) == len(targets) == 20_040
    for source, target in zip(sources[-40:], targets[-40:], strict=True):
        assert characters.text(source) == iso.text(target)
    assert characters.text(sources[0]) != iso.text(targets[0])


def test_accuracy_by_format_is_that_of_whole_dates(monkeypatch):
    numbers = torch.Generator().manual_seed(1)
    seen = []

    def right_tokens(model, sources, targets):
        seen.append(torch.rand(len(sources), 11, generator=numbers) < 0.95)
        return seen[-1]

    monkeypatch.setattr(date_styles, "right_tokens", right_tokens)
    found = date_styles.by_style(small())
    assert list(found) == list(date_styles.tests())
    for share, right in zip(found.values(), seen, strict=True):
        assert share == pytest.approx(sum(all(row) for row in right.tolist()) / date_styles.DAYS)


def test_exposure_is_measured_after_the_first_mistake(monkeypatch):
    model = small()
    few = {name: dates[:2] for name, dates in date_styles.tests().items()}
    monkeypatch.setattr(date_styles, "tests", lambda: few)
    found = date_styles.exposure(model)
    dates = [one for each in few.values() for one in each][::7]
    later, every, whole = {}, {}, {}
    for source, target in zip(*bottleneck.encode_dates(dates), strict=True):
        forced = model(source[None], target[None, :-1]).logits[0].argmax(dim=-1)
        free = model.generate(source[None], 11).tokens[0]
        free = F.pad(free, (0, 11 - len(free)))
        first = (forced != target[1:]).tolist().index(True)
        assert (free != target[1:]).tolist().index(True) == first
        for name, tokens in {"teacher forcing": forced, "autoregressive": free}.items():
            right = (tokens == target[1:]).tolist()
            later.setdefault(name, []).extend(right[first + 1 :])
            every.setdefault(name, []).extend(right)
            whole.setdefault(name, []).append(all(right))
    for name, shares in found.items():
        parts = [later[name], every[name], whole[name]]
        assert shares == pytest.approx([sum(part) / len(part) for part in parts], abs=1e-6)
