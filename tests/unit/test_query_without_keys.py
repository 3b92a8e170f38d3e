"""The tables of notebook 4 and study 5c: what becomes of a query whose keys are all masked, by who computes it.

The rows of a GPU were measured on an H200 with PyTorch 2.11, those of Keras with Keras 3.15.1 on PyTorch; the others are
run here.
"""

import functools
import math
import re
from pathlib import Path

import nbformat
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
LESSON = NOTEBOOKS / "04_self_and_cross_attention.ipynb"
STUDY = NOTEBOOKS / "studies" / "05c_other_peoples_code.ipynb"
INPUTS = torch.randn(3, 1, 1, 4, 8, generator=torch.Generator().manual_seed(1)).unbind()
MASK = torch.ones(1, 1, 4, 4, dtype=torch.bool)
MASK[..., 1, :] = False  # query 1


def additive(mask: Tensor, lowest: float = -math.inf) -> Tensor:
    return torch.where(mask, 0.0, lowest)


def kernel(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, mask)


def kernel_added(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, additive(mask))


def kernel_minimum(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, additive(mask, torch.finfo(q.dtype).min))


def filled(q, k, v, mask, lowest=-math.inf):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.masked_fill(~mask, lowest).softmax(-1) @ v


def added(q, k, v, mask):
    return (q @ k.mT / math.sqrt(q.shape[-1]) + additive(mask)).softmax(-1) @ v


@functools.cache
def listing():
    """Return `masked_softmax` of the lesson's listing."""
    cells = nbformat.read(LESSON, as_version=4).cells
    (source,) = (cell.source for cell in cells if cell.source.startswith("# Complete:"))
    names = {"__name__": __name__}
    exec(source, names)
    return names["masked_softmax"]


def listed(q, k, v, mask):
    return listing()(q @ k.mT / math.sqrt(k.shape[-1]), mask) @ v


def kind(output: Tensor, value: Tensor = INPUTS[2]) -> str:
    """Name the output of query 1."""
    row = output.detach().flatten(0, -3)[0, 1]
    if row.isnan().any():
        return "NaN"
    mean = value.flatten(0, -3)[0].mean(0)
    return (
        "zeros" if (row == 0).all() else "mean" if torch.allclose(row, mean, atol=1e-5) else "other"
    )


def eager(attention, dtype=torch.float32) -> str:
    return kind(attention(*(x.to(dtype) for x in INPUTS), MASK).float())


def compiled(attention) -> str:
    torch.compiler.reset()
    with torch.no_grad():
        return kind(torch.compile(attention)(*INPUTS, MASK))


def exported(attention, opset: int | None = None) -> str:
    onnxruntime = pytest.importorskip("onnxruntime")

    class Exported(nn.Module):
        def forward(self, q, k, v, mask):
            return attention(q, k, v, mask)

    program = torch.onnx.export(
        Exported().eval(), (*INPUTS, MASK), dynamo=True, verbose=False, opset_version=opset
    )
    model = program.model_proto
    if opset is None:
        assert model.opset_import[0].version == 20  # the default, as the page says
    session = onnxruntime.InferenceSession(model.SerializeToString())
    given = {
        one.name: x.numpy() for one, x in zip(session.get_inputs(), (*INPUTS, MASK), strict=True)
    }
    return kind(torch.from_numpy(session.run(None, given)[0]))


def torch_layer(need_weights: bool = True, train: bool = True) -> list[str]:
    """Of the heads: the output projection is the identity. One mask for all sequences, then one of padding."""
    layer, x = nn.MultiheadAttention(8, 2, batch_first=True).train(train), INPUTS[0][0]
    with torch.no_grad():
        layer.out_proj.weight.copy_(torch.eye(8))
    padding = torch.ones(1, 4, dtype=torch.bool)
    with torch.set_grad_enabled(train):
        return [
            kind(layer(x, x, x, need_weights=need_weights, **mask)[0])
            for mask in ({"attn_mask": ~MASK[0, 0]}, {"key_padding_mask": padding})
        ]


def filled_float16() -> str:
    with pytest.raises(RuntimeError, match="overflow"):
        eager(functools.partial(filled, lowest=-1e9), torch.float16)
    return "an error"


def hugging_face(implementation: str) -> str:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        attn_implementation=implementation,
    )  # fmt: skip
    model, seen = BertModel(config).eval(), {}
    attention = model.encoder.layer[0].attention.self
    attention.register_forward_hook(lambda module, given, out: seen.update(output=out[0]))
    attention.value.register_forward_hook(lambda module, given, out: seen.update(value=out))
    model(torch.randint(5, 50, (1, 4)), attention_mask=torch.zeros(1, 4, dtype=torch.long))
    return kind(seen["output"].reshape(1, 4, 16), seen["value"])


SDPA = "`F.scaled_dot_product_attention`"
#: (computed by, mask) → what gives the output, once or more.
ROWS = {
    (f"{SDPA}, CPU", "boolean, or 0 and −∞"): lambda: [
        eager(attention, dtype)
        for attention in (kernel, lambda q, k, v, mask: kernel(q, k, v, additive(mask).to(q.dtype)))
        for dtype in (torch.float32, torch.bfloat16, torch.float16)
    ] + [compiled(kernel), compiled(kernel_added)],
    (f"{SDPA}, CPU", "0 and the dtype's minimum"): lambda: [eager(kernel_minimum)],
    ("softmax written out", "−∞"): lambda: [eager(filled), eager(added)],
    ("softmax written out, float16", "−10⁹ filled in"): lambda: [filled_float16()],
    ("softmax written out, float32", "−10⁹"): lambda: [
        eager(functools.partial(filled, lowest=-1e9)), compiled(functools.partial(filled, lowest=-1e9)),
    ],
    ("softmax written out, `torch.compile`", "−∞ filled in"): lambda: [compiled(filled)],
    ("softmax written out, `torch.compile`, no gradients", "−∞ added"): lambda: [compiled(added)],
    ("`nn.MultiheadAttention`", "boolean"): lambda: torch_layer(),
    ("`nn.MultiheadAttention`, `need_weights=False`, with gradients", "boolean"): lambda: torch_layer(False),
    ("`nn.MultiheadAttention`, eval mode, no gradients", "boolean"): lambda: [
        *torch_layer(train=False), *torch_layer(False, train=False),
    ],
    (f"{SDPA}, ONNX opset 20", "boolean"): lambda: [exported(kernel)],
    (f"{SDPA}, ONNX opset 20", "0 and −∞"): lambda: [exported(kernel_added)],
    (f"{SDPA}, ONNX opset 23", "boolean, or 0 and −∞"): lambda: [
        exported(kernel, 23), exported(kernel_added, 23),
    ],
    ('Hugging Face, `"eager"`', "integers"): lambda: [hugging_face("eager")],
    ('Hugging Face, `"sdpa"`', "integers"): lambda: [hugging_face("sdpa")],
}  # fmt: skip
#: Cited with their versions, not run here.
CITED = {
    (f"{SDPA}, GPU, half precision", "boolean"),
    (f"{SDPA}, GPU, half precision", "0 and −∞"),
    ("Keras, `MultiHeadAttention`", "boolean"),
    ("Keras, `MultiHeadAttention` that returns its scores", "boolean"),
}


def rows(path: Path) -> dict[tuple[str, str], str]:
    """Return the rows of one notebook: (computed by, mask) → output."""
    cells = nbformat.read(path, as_version=4).cells
    (source,) = (cell.source for cell in cells if "## A query without keys\n" in cell.source)
    section = source.split("## A query without keys\n")[1].split("\n## ")[0]
    found = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", section, re.MULTILINE)
    return {(by, mask): output for by, mask, output in found[1:]}


@functools.cache
def table() -> dict[tuple[str, str], str]:
    first, second = rows(LESSON), rows(STUDY)
    assert not first.keys() & second.keys()
    return first | second


def test_every_row_is_run_or_cited():
    assert table().keys() == ROWS.keys() | CITED


@pytest.mark.parametrize("row", ROWS, ids=lambda row: re.sub(r"[^\w, −-]", "", ", ".join(row)))
def test_a_row(row, without_annotations):
    assert set(ROWS[row]()) == {table()[row]}


@pytest.mark.parametrize("run", [eager, compiled, exported], ids=lambda run: run.__name__)
def test_the_listing_gives_zeros_everywhere(run, without_annotations):
    assert run(listed) == "zeros"
