"""Attention and models on a GPU, compiled; a file of its own, so that another process takes it."""

import functools

import pytest
import torch

from tests.helpers import devices

devices.need_cuda()


@pytest.mark.parametrize("make", devices.compiled_rows(devices.FULL))
def test_compiled(make):
    torch.compiler.reset()
    wrap = functools.partial(torch.compile, fullgraph=True)
    devices.compare(make(), "cuda", torch.bfloat16, wrap)
