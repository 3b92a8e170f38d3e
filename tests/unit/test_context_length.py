"""The recorded experiment on language models beyond their training length."""

import math

import pytest
import torch

from course_lib.experiments.context_length import (
    EXTENSIONS,
    LENGTHS,
    extended,
    losses,
    make_model,
    repaired,
    text,
    train,
)
from course_lib.transformer.positions import rotary


def test_the_text_is_split_without_overlap():
    training, held_out, alphabet = text()
    assert min(training.min(), held_out.min()) >= 1, "0 is padding"
    assert max(training.max(), held_out.max()) == len(alphabet)
    whole = "".join(alphabet[n - 1] for n in torch.cat([training, held_out]).tolist())
    assert "assert expression" in whole and len(held_out) == pytest.approx(0.1 * len(whole), abs=1)


def test_longer_windows_score_the_same_characters(without_annotations):
    asked = []

    class Uniform(torch.nn.Module):
        def forward(self, tokens):
            asked.append(tokens)
            return torch.zeros(*tokens.shape, len(text()[2]) + 1)

    measured = losses(Uniform(), count=3)
    assert measured == pytest.approx([math.log(len(text()[2]) + 1)] * 4)
    assert [tokens.shape[1] for tokens in asked] == list(LENGTHS)
    for tokens in asked[1:]:
        assert torch.equal(tokens[:, -LENGTHS[0] :], asked[0])


def test_training_lowers_the_loss():
    model = make_model("alibi")
    (before,) = losses(model, count=8, lengths=(64,))
    train(model, length=64, steps=12, lr=3e-3, seed=3)
    assert losses(model, count=8, lengths=(64,))[0] < before - 0.5


def test_an_extension_changes_the_angles_and_nothing_else():
    model = make_model("rotary")
    x, d_head = torch.randn(1, 4, 8, 16), model.config.d_head
    assert d_head == 16
    wanted = {
        "unchanged": rotary(x, torch.arange(8)),
        "larger base (NTK-aware)": rotary(x, torch.arange(8), 10000.0 * 4 ** (16 / 14)),
    }
    for name, divisors in (
        ("position interpolation", [4.0] * 8),
        ("fast pairs interpolated", [4.0] * 3 + [1.0] * 5),
        ("slow pairs interpolated", [1.0] * 3 + [4.0] * 5),
    ):
        omega = 10000.0 ** (-torch.arange(0, 16, 2) / 16) / torch.tensor(divisors)
        angles = torch.arange(8)[:, None] * omega
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2))) * torch.exp(1j * angles)
        wanted[name] = torch.view_as_real(pairs).flatten(-2)
    assert set(wanted) == set(EXTENSIONS)
    for name, rotated in wanted.items():
        other = extended(model, name)
        for block in other.blocks:
            query, key = block.attention.positions.rotate(x, x)
            torch.testing.assert_close(query, rotated)
            torch.testing.assert_close(key, rotated)
        for one, same in zip(model.parameters(), other.parameters(), strict=True):
            assert torch.equal(one, same) and one is not same


def test_the_repair_gives_far_keys_the_last_trained_bias():
    model = make_model("t5")
    for before, after in zip(model.blocks, repaired(model).blocks, strict=True):
        biases = [
            block.attention.positions(1, 200)[:, 0].flip(-1).detach() for block in (before, after)
        ]  # (heads, distance) each
        assert torch.equal(biases[0][:, :64], biases[1][:, :64])
        assert not torch.equal(biases[0], biases[1])
        assert (biases[1][:, 64:] == biases[1][:, [63]]).all()
