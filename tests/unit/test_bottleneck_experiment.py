"""The experiment of studies 03b and 03c, the bottleneck: what is trained, how it is evaluated, and what was recorded."""

import pytest
import torch
import torch.nn.functional as F

from course_lib.data import PairBatches, date_vocabularies, written_dates
from course_lib.experiments import bottleneck
from course_lib.topics.recurrent import GRUEncoder, Seq2Seq


def small(decoder="Bahdanau"):
    torch.manual_seed(3)
    return Seq2Seq(GRUEncoder(13, 16, 16), bottleneck.DECODERS[decoder](13))


def batch():
    return next(iter(PairBatches(*bottleneck.copy_pairs(64, seed=5), batch_size=8)))


@pytest.mark.parametrize(
    ("decoder", "at_once"),
    [("fixed context", bottleneck.fixed_context_logits), ("Luong", bottleneck.luong_logits)],
)
def test_one_call_of_pytorchs_gru_is_the_decoder_step_by_step(decoder, at_once):
    model = small(decoder).double()
    ours = at_once(model, batch())
    theirs = model(batch().source, batch().target[:, :-1]).logits
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    mix = torch.randn(ours.shape, dtype=torch.float64)
    parameters = list(model.parameters())
    gradients = [torch.autograd.grad((one * mix).sum(), parameters) for one in (ours, theirs)]
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-10)


@pytest.mark.parametrize("decoder", ["fixed context", "Bahdanau", "Luong"])
def test_the_loss_counts_every_label_once_and_no_padding(decoder):
    model, (source, target) = small(decoder), batch()
    losses = []
    for row, labels in enumerate(target):
        length = int((labels != 0).sum())
        real = source[row][source[row] != 0][None]
        logits = model(real, labels[None, : length - 1]).logits[0]
        losses += F.cross_entropy(logits, labels[1:length], reduction="none").tolist()
    expected = sum(losses) / len(losses)
    assert bottleneck.teacher_forcing_loss(model, batch()).item() == pytest.approx(
        expected, rel=1e-5
    )


def test_pairs_to_copy_are_strings_of_1_to_10_digits():
    sources, targets = bottleneck.copy_pairs(2000, seed=1)
    assert {len(source) for source in sources} == set(range(1, 11))
    assert set(torch.cat(sources).tolist()) == set(range(3, 13))
    for source, target in zip(sources, targets, strict=True):
        assert target.tolist() == [1, *source.tolist(), 2]


def test_exact_matches_are_those_of_one_sequence_at_a_time():
    """Every second target is what the model generates for this source alone; the others differ from it."""
    model, targets = small(), []
    sources, _ = bottleneck.copy_pairs(40, seed=8)
    for number, source in enumerate(sources):
        generated = model.generate(source[None], 9).tokens[0]
        target = generated if number % 2 else (generated + 1) % 13
        targets.append(F.pad(target, (1, 0), value=1))
    assert bottleneck.exact_matches(model, sources, targets).tolist() == [
        n % 2 == 1 for n in range(40)
    ]


def test_errors_in_dates_are_counted_by_field_and_by_length(monkeypatch):
    right = torch.rand(200, 11, generator=torch.Generator().manual_seed(1)) < 0.95
    monkeypatch.setattr(bottleneck, "right_tokens", lambda *_: right)
    wrong, classes = [0, 0, 0], [[], [], [], []]
    for row, one in enumerate(written_dates(200, split="held-out days")):
        parts = (right[row, 0:4], right[row, 5:7], right[row, 8:10])
        for field, part in enumerate(parts):
            wrong[field] += not all(part.tolist())
        size = len(one.text)
        classes[(size >= 12) + (size >= 18) + (size >= 24)].append(all(right[row].tolist()))
    errors = bottleneck.date_errors(small(), 200)
    assert errors["wrong"] == wrong and len(set(wrong)) == 3
    assert errors["by length"] == pytest.approx([sum(each) / len(each) for each in classes])


def test_attention_to_dates_is_that_of_one_date_at_a_time(without_annotations):
    torch.manual_seed(2)
    characters, iso = date_vocabularies()
    model = Seq2Seq(GRUEncoder(len(characters), 32, 16), bottleneck.DECODERS["Bahdanau"](len(iso)))
    with torch.no_grad():  # it generates no end token, so that there are 11 steps
        model.decoder.readout.W.bias[2] = -100.0
    found, dates = bottleneck.date_attention(model, 12), written_dates(12, split="held-out days")
    digits = {"year": "YYYY------", "month": "-----MM---", "day": "--------DD"}
    for n, (field, pattern) in enumerate(digits.items()):
        shares, right = [], {name: [] for name in digits}
        for one in dates:
            source, labels = characters.encode(one.text)[None], iso.encode(one.iso, eos=True)
            columns = one.fields[field]
            weights = model.generate(source, 11).weights[0]
            steps = [step for step, letter in enumerate(pattern) if letter != "-"]
            shares += [weights[step, columns.start : columns.stop].sum().item() for step in steps]
            encoded = model.encoder(source)
            encoded.mask[0, 0, columns.start : columns.stop] = False
            inputs = F.pad(labels[:-1], (1, 0), value=1)[None]
            logits = model.decoder(inputs, encoded).logits[0]
            for name, where in digits.items():
                at = [step for step, letter in enumerate(where) if letter != "-"]
                right[name] += (logits[at].argmax(dim=-1) == labels[at]).tolist()
        assert found["share"][n] == pytest.approx(sum(shares) / len(shares), abs=1e-6)
        expected = [sum(each) / len(each) for each in right.values()]
        assert found["masked"][n] == pytest.approx(expected, abs=1e-6)
