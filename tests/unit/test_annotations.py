"""A shape in a signature is a tested statement: the test suite enforces it."""

import pytest
import torch
from jaxtyping import TypeCheckError

from course_lib.pooling import attention_pooling, gaussian_kernel


def test_a_wrong_shape_or_dtype_is_caught_by_the_annotation():
    with pytest.raises(TypeCheckError):
        attention_pooling(torch.rand(2, 2), torch.rand(3), torch.rand(3))
    with pytest.raises(TypeCheckError):
        gaussian_kernel(torch.tensor([1]))
