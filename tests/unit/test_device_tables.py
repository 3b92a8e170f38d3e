"""The tables of `tests/device` with small sizes on the CPU, in the form that a GPU is given."""

import functools
import inspect
from types import SimpleNamespace

import pytest
import torch

import course_lib.transformer as library
from course_lib.transformer import attention, cache
from tests.helpers import devices
from tests.helpers.device_record import merged, section

#: Results and types, which other calls return or take; AttentionPositions and its like are made by `make_positions`.
MADE_BY_OTHERS = {
    "AttentionOutput", "BeamStep", "Beams", "LayerCache", "CrossAttentionCache", "IncrementalDecoder", "LayerNorm",
    "Memory", "ModelCache", "Positions",
}  # fmt: skip


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """There the kernel gets an additive mask, and the number of tokens in a cache stays a tensor; float64 is the CPU."""
    made = attention.kernel_mask

    def kernel_mask(mask, bias, dtype, device):
        return made(mask, bias, dtype, device if dtype == torch.float64 else "cuda")

    monkeypatch.setattr(attention, "kernel_mask", kernel_mask)
    monkeypatch.setattr(cache, "_number", lambda position: position)


@pytest.mark.parametrize("dtype", devices.DTYPES)
@pytest.mark.parametrize("make", devices.rows(devices.SMALL))
def test_call(make, dtype, as_on_a_gpu, without_annotations):
    devices.compare(make(), "cpu", dtype)


@pytest.mark.parametrize("dtype", devices.DTYPES)
@pytest.mark.parametrize(("name", "kind", "positions"), devices.DECODING)
def test_decoding(name, kind, positions, dtype, as_on_a_gpu, without_annotations):
    devices.check_decoding(name, kind, positions, (12, 8), "cpu", dtype)


@pytest.mark.parametrize("make", devices.compiled_rows(devices.SMALL, encodings=[]))
def test_compiled(make, without_annotations):
    torch.compiler.reset()
    wrap = functools.partial(torch.compile, fullgraph=True, backend="eager")
    devices.compare(make(), "cpu", torch.float32, wrap)


def test_the_tables_have_every_public_call():
    calls = {
        name
        for name, one in vars(library).items()
        if callable(one) and not name.startswith("_") and not inspect.ismodule(one)
    }
    encodings = {name for name in calls if name.endswith("Positions") or name == "AlibiBias" or name == "T5RelativeBias"}  # fmt: skip
    assert calls - encodings - MADE_BY_OTHERS <= set(vars(devices))


def test_the_record_of_a_run(monkeypatch):
    """A device has one section, of its last run; those of others stay."""

    def reports(*names):
        return [SimpleNamespace(nodeid=f"tests/device/test_device.py::{name}") for name in names]

    written = ""
    runs = {
        "B": reports("test_call[attention, causal-float16]"),
        "A": [],
        "B ": reports("test_call[attention, x]", "test_compiled[a]"),
    }
    for device, failed in runs.items():
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device=device: device.strip())
        passed = reports("test_call[attention, no mask]", "test_call[rotary, length 7]")
        written = merged(written, section({"passed": passed, "failed": failed}))
    assert [line for line in written.splitlines() if line.startswith(("## ", "| ", "- "))] == [
        "## A", "| calls | passed | failed |", "| attention | 1 | 0 |", "| rotary | 1 | 0 |",
        "## B", "| calls | passed | failed |", "| attention | 1 | 1 |", "| rotary | 1 | 0 |",
        "| test_compiled | 0 | 1 |", "- `test_call[attention, x]`", "- `test_compiled[a]`",
    ]  # fmt: skip
    assert f"PyTorch {torch.__version__}" in written
