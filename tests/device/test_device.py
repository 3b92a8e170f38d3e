"""Every public call on a GPU, in each dtype, against float64 on the CPU; see `tests/helpers/devices.py`."""

import pytest

from tests.helpers import devices

devices.need_cuda()


@pytest.mark.parametrize("dtype", devices.DTYPES)
@pytest.mark.parametrize("make", devices.rows(devices.FULL))
def test_call(make, dtype):
    devices.compare(make(), "cuda", dtype)


@pytest.mark.parametrize("size", [(12, 16), (65, 64)], ids=str)
@pytest.mark.parametrize("dtype", devices.DTYPES)
@pytest.mark.parametrize(("name", "kind", "positions"), devices.DECODING)
def test_decoding(name, kind, positions, dtype, size):
    devices.check_decoding(name, kind, positions, size, "cuda", dtype)
