"""Weights in eight bits against explicit loops, and the language model with them."""

import dataclasses

import pytest
import torch
from torch import nn

from course_lib.topics.pretrained import CONFIG, continue_text, load_smollm2, smollm2
from course_lib.topics.pretrained.int8 import Int8Linear
from tests.helpers.language_model import TEXTS, needs_model
from tests.helpers.language_model import smollm2 as in_float32


def layer(out=7, size=32):
    return nn.Linear(size, out, bias=False)


def test_rows_and_scales_are_those_of_a_loop():
    linear = layer()
    small = Int8Linear(linear)
    for row, rounded, scale in zip(linear.weight, small.rows, small.scale, strict=True):
        step = max(abs(w.item()) for w in row) / 127
        assert scale.item() == pytest.approx(step, rel=2**-8)
        assert rounded.tolist() == [round(w.item() / step) for w in row]
    assert small.rows.abs().max() == 127


def test_the_product_is_that_of_the_dequantised_weights():
    small, x = Int8Linear(layer()), torch.randn(2, 3, 32).bfloat16()
    exact = x.double() @ (small.rows.double() * small.scale.double()[:, None]).T
    assert small(x).shape == (2, 3, 7) and small(x).dtype == torch.bfloat16
    torch.testing.assert_close(small(x).double(), exact, rtol=2**-7, atol=2**-6)
    torch.testing.assert_close(
        small.weight.double(), small.rows * small.scale.double()[:, None], rtol=2**-8, atol=0
    )


def test_a_row_of_zeros_stays_zero():
    linear = layer()
    nn.init.zeros_(linear.weight)
    assert (Int8Linear(linear)(torch.ones(1, 32).bfloat16()) == 0).all()


def dtype_of(layer):
    return torch.int8 if isinstance(layer, Int8Linear) else layer.weight.dtype


@pytest.mark.parametrize("wanted", [torch.float32, torch.bfloat16, torch.int8])
def test_the_fastest_dtype_is_the_one_with_the_shortest_time(monkeypatch, wanted):
    monkeypatch.setattr(smollm2, "CONFIG", dataclasses.replace(CONFIG, target_vocabulary=17))
    monkeypatch.setattr(smollm2, "_seconds", lambda layer: dtype_of(layer) != wanted)
    assert smollm2.fastest_dtype() == wanted


def test_int8_is_refused_where_pytorch_has_no_product(monkeypatch):
    monkeypatch.setattr(smollm2, "PRODUCT", None)
    with pytest.raises(
        ValueError, match=r"dtype=torch.int8 needs a product that PyTorch .* does not have"
    ):
        load_smollm2(torch.int8)


@needs_model
@torch.no_grad()
def test_the_language_model_in_eight_bits():
    def loss(model):
        tokens = torch.tensor([tokenizer.encode(TEXTS[-2])])
        return nn.functional.cross_entropy(model(tokens)[0, :-1].float(), tokens[0, 1:]).item()

    tokenizer = in_float32()[1]
    wanted = loss(in_float32()[0])
    in_float32.cache_clear()  # half a gigabyte, which the next line reads once more
    small, _ = load_smollm2(torch.int8)
    assert "".join(continue_text(small, tokenizer, TEXTS[0], max_length=1)) == " Paris"
    assert loss(small) == pytest.approx(wanted, abs=0.1) and loss(small) != wanted
