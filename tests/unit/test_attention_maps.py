"""Recording attention weights; their entropy and mean distance."""

import math

import numpy as np
import pytest
import scipy.stats
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.topics.attention_maps import (
    entropy,
    mean_distance,
    record_attention,
    weights_version,
)
from course_lib.transformer.attention import Attention, AttentionOutput, SelfAttention
from course_lib.transformer.convert import from_torch
from course_lib.transformer.multihead import MultiHeadAttention
from course_lib.transformer.scoring import DotScore
from tests.helpers.attention import BATCH, HEADS, KEYS, QUERIES
from tests.helpers.multihead import HeadLoop
from tests.helpers.tensors import DTYPES, ROUNDING

# --- recording -------------------------------------------------------------------------------


class Model(nn.Module):
    """Layers of three kinds; the second is called twice, the third has heads that are layers too."""

    def __init__(self):
        super().__init__()
        self.fused = MultiHeadAttention(6, 3, dropout=0.3)
        self.blocks = nn.ModuleList([SelfAttention(6), HeadLoop(6, 2)])
        self.pooled = Attention(DotScore())

    def parts(self, x, need_weights=True):
        """What each layer returns, in the order of the calls."""
        yield "fused", self.fused(x, need_weights=need_weights)
        yield "blocks.0", self.blocks[0](x)
        yield "blocks.0", self.blocks[0](2 * x)
        yield "blocks.1", self.blocks[1](x, 3 * x)
        yield "pooled", self.pooled(x[0], x[1], x[2])

    def forward(self, x):
        return [attended.output for _, attended in self.parts(x, need_weights=False)]


def quiet_model():
    return Model().double().eval(), torch.randn(4, 5, 6, dtype=torch.float64)


def hooks(model):
    return sum(
        len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()
    )


@pytest.mark.verifies(
    "course_lib.topics.attention_maps.record_attention",
    against="the weights that every layer returns",
)
def test_record_attention_returns_the_weights_of_every_layer(ledger):
    model, x = quiet_model()
    with record_attention(model) as maps:
        model(x)
    assert {name: len(calls) for name, calls in maps.items()} == {"fused": 1, "blocks.0": 2, "blocks.1": 1, "pooled": 1}  # fmt: skip
    for name, attended in model.parts(x):
        mine, theirs = maps[name].pop(0), attended.weights
        theirs = {"blocks.0": theirs[:, None], "pooled": theirs[None, None]}.get(name, theirs)
        assert not mine.requires_grad
        ledger.compare(mine, theirs, within=0)


def test_record_attention_has_no_side_effects():
    model, x = quiet_model()
    plain = model(x)
    with record_attention(model) as maps:
        recorded = model(x)
        assert hooks(model) > 0
    torch.testing.assert_close(recorded, plain)
    model(x)
    assert hooks(model) == 0 and len(maps["fused"]) == 1


def test_record_attention_removes_its_hooks_after_an_error():
    model, x = quiet_model()
    with pytest.raises(RuntimeError, match="shape"), record_attention(model) as maps:
        model.fused(x)
        model(x[..., :2])
    assert hooks(model) == 0
    assert {name: len(tensors) for name, tensors in maps.items()} == {"fused": 1}


@pytest.mark.parametrize("make", [MultiHeadAttention, HeadLoop])
def test_record_attention_names_the_model_itself_with_the_empty_string(make):
    layer, x = make(6, 3), torch.randn(4, 5, 6)
    with record_attention(layer) as maps:
        attended = layer(x)
    assert list(maps) == [""] and torch.equal(maps[""][0], attended.weights)


class Impatient(nn.Module):
    """Calls one head of its layer alone, and then the whole layer twice."""

    def __init__(self):
        super().__init__()
        self.attention = HeadLoop(6, 2)

    def forward(self, x):
        alone = self.attention.heads[1](x, x, x)
        return alone.weights, *(self.attention(x).weights for _ in range(2))


def test_record_attention_of_nested_layers():
    model, x = nn.ModuleDict({"inner": Impatient()}), torch.randn(4, 5, 6)
    with record_attention(model) as maps:
        alone, *whole = model["inner"](x)
    assert list(maps) == ["inner.attention.heads.1", "inner.attention"]
    torch.testing.assert_close(maps["inner.attention.heads.1"], [alone[:, None]])
    torch.testing.assert_close(maps["inner.attention"], whole)


class Foreign(nn.Module):
    """PyTorch's own layer is none of ours, and `need_weights` is its fifth argument; one of ours has no weights."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 3, batch_first=True)
        self.weightless = nn.Identity()
        self.weightless.forward = lambda x: AttentionOutput(x, None)

    def forward(self, x):
        return self.attention(x, x, x, None, False), self.weightless(x)


def test_a_layer_of_pytorch_is_recorded_and_gives_what_it_was_asked_for():
    model, x = Foreign(), torch.randn(4, 5, 6)
    with record_attention(model) as maps:
        (_, weights), _ = model(x)
    assert weights is None and list(maps) == ["attention"], "the other has no weights"
    layer, q, k = (
        nn.MultiheadAttention(6, 3, batch_first=True),
        torch.randn(4, 5, 6),
        torch.randn(4, 7, 6),
    )
    each = layer(q, k, k, average_attn_weights=False)[1]
    with record_attention(layer) as maps:
        plain, mean, own = (
            layer(q, k, k),
            layer(q, key=k, value=k, need_weights=True),
            layer(q, k, k, None, True, None, False),
        )
        alone = layer(q[0], k[0], k[0], need_weights=False)
    assert torch.equal(plain[1], mean[1]) and torch.equal(own[1], each) and alone[1] is None
    torch.testing.assert_close(plain[1], each.mean(1))
    assert all(torch.equal(one, each) for one in maps[""][:3])
    torch.testing.assert_close(maps[""][3], each[:1])
    assert hooks(layer) == 0 and torch.backends.mha.get_fastpath_enabled()


@pytest.mark.verifies(
    "course_lib.topics.attention_maps.record_attention",
    against="PyTorch `nn.Transformer`, converted",
)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor", "ignore:The PyTorch API of nested")
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("padded", [True, False])
def test_record_attention_of_pytorchs_transformer_equals_the_converted_one(
    ledger, norm_first, padded
):
    theirs = nn.Transformer(
        6, 2, 2, 1, 8, batch_first=True, norm_first=norm_first, dtype=torch.float64
    ).eval()
    x, y = (torch.randn(BATCH, length, 6, dtype=torch.float64) for length in (KEYS, QUERIES))
    mask = (
        torch.arange(KEYS).expand(BATCH, -1) >= torch.tensor([[KEYS - 1]] * (BATCH - 1) + [[2]])
        if padded
        else None
    )
    given = {"src_key_padding_mask": mask, "memory_key_padding_mask": mask}
    with torch.no_grad():
        wanted = theirs(x, y, **given)
        with record_attention(theirs) as maps:
            output = theirs(x, y, **given)
    torch.testing.assert_close(output, wanted)
    names = ["encoder.layers.0.self_attn", "encoder.layers.1.self_attn", "decoder.layers.0.self_attn", "decoder.layers.0.multihead_attn"]  # fmt: skip
    assert list(maps) == names
    ours, may = from_torch(theirs.encoder.layers[0]), None if mask is None else ~mask[:, None, :]
    with torch.no_grad(), record_attention(ours) as converted:
        ours(x, mask=may)
    ledger.compare(maps[names[0]][0], converted["attention"][0], within=ROUNDING[torch.float64])
    assert maps[names[3]][0].shape == (BATCH, 2, QUERIES, KEYS)


def test_a_model_of_hugging_face_is_told_how_it_gives_its_weights():
    from transformers import LlamaConfig, LlamaModel

    sizes = {
        "vocab_size": 11,
        "hidden_size": 8,
        "intermediate_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    model = LlamaModel(LlamaConfig(**sizes))
    tokens = torch.arange(3)[None]
    said = "attn_implementation='eager', and call them with output_attentions=True"
    with pytest.raises(ValueError, match=said), record_attention(model):
        model(tokens)
    model.set_attn_implementation("eager")
    found = model(tokens, output_attentions=True).attentions
    assert [one.shape for one in found] == [(1, 2, 3, 3)] * 2


# --- entropy and mean distance ---------------------------------------------------------------


def some_weights(dtype, *shape):
    """Rows that sum to one; the first has a single key, the second is hidden whole."""
    weights = torch.rand(shape, dtype=torch.float64).softmax(-1)
    weights[..., 0, :] = F.one_hot(torch.tensor(shape[-1] - 1), shape[-1])
    weights[..., 1, :] = 0
    return weights.to(dtype)


@pytest.mark.verifies("course_lib.topics.attention_maps.entropy", against="SciPy `entropy`")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (BATCH, HEADS)])
def test_entropy_equals_scipy(ledger, batch, dtype):
    weights = some_weights(dtype, *batch, QUERIES, KEYS)
    ours = entropy(weights)
    rows = weights.double().numpy()
    theirs = np.zeros(rows.shape[:-1])
    for row in np.ndindex(theirs.shape):
        theirs[row] = scipy.stats.entropy(rows[row]) if rows[row].any() else 0.0
    assert ours.dtype == dtype
    ledger.compare(ours, theirs, within=ROUNDING[dtype])
    assert (ours[..., :2] == 0).all()
    assert entropy(torch.full((KEYS,), 1 / KEYS)).item() == pytest.approx(math.log(KEYS))


@pytest.mark.verifies(
    "course_lib.topics.attention_maps.mean_distance", against="an explicit double loop"
)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (BATCH, HEADS, 4, 6)])
def test_mean_distance_equals_a_double_loop(ledger, shape, dtype):
    *batch, queries, keys = shape
    weights = torch.rand(shape, dtype=torch.float64).softmax(-1).to(dtype)
    theirs = np.zeros(batch)
    for *where, i, j in np.ndindex(*shape):
        place = i + keys - queries  # queries are the last of the keys
        theirs[*where] += weights[*where, i, j].item() * abs(place - j) / queries
    ours = mean_distance(weights)
    assert ours.dtype == dtype
    ledger.compare(ours, theirs, within=ROUNDING[dtype])


@pytest.mark.verifies(
    "course_lib.topics.attention_maps.weights_version", against="changes in place, made one by one"
)
def test_weights_version_changes_with_every_change_in_place(ledger):
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    seen = [weights_version(model)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    seen.append(weights_version(model))
    for parameter in model.parameters():
        parameter.detach().add_(1.0)
        seen.append(weights_version(model))
    model.load_state_dict(model.state_dict())
    seen.append(weights_version(model))
    assert len(set(seen)) == 7
    ledger.holds()
