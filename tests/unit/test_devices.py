"""Results live where the arguments do, whatever the default device is."""

import pytest
import torch
from torch import Tensor, nn

from tests.helpers.callables import CALLS, leaves

# Under another default device, a tensor that is made without `device=` does not fit the arguments, as with CUDA.
TENSORS = (Tensor, nn.Module)


def takes_tensors(name):
    call = CALLS[name]()
    owner = getattr(call.function, "__self__", None)
    return any(isinstance(one, TENSORS) for one in (call.function, owner, *call.arguments.values()))


def result(name, default_device):
    torch.manual_seed(0)
    function, arguments = CALLS[name]()
    torch.manual_seed(1)
    with torch.device(default_device):
        return function(**arguments)


@pytest.mark.parametrize("name", [name for name in CALLS if takes_tensors(name)])
def test_no_tensor_is_made_on_the_default_device(name):
    expected, found = result(name, "cpu"), result(name, "meta")
    for ours, wanted in zip(leaves(found), leaves(expected), strict=True):
        if isinstance(ours, Tensor):
            assert ours.device.type == "cpu"
            assert torch.equal(ours.nan_to_num(), wanted.nan_to_num())
