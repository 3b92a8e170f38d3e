"""Shapes and dtypes in signatures; the functions that name a wrong argument: what they suggest and take."""

import numpy as np
import pytest
import torch
from jaxtyping import TypeCheckError

from course_lib.topics.pooling import attention_pooling, gaussian_kernel
from course_lib.transformer.masks import causal_mask
from course_lib.validation import require_divides, require_whole


def test_a_wrong_shape_or_dtype_is_caught_by_the_annotation():
    with pytest.raises(TypeCheckError):
        attention_pooling(torch.rand(2, 2), torch.rand(3), torch.rand(3))
    with pytest.raises(TypeCheckError):
        gaussian_kernel(torch.tensor([1]))


def suggested(part, whole):
    with pytest.raises(ValueError, match="try num_heads=") as error:
        require_divides(num_heads=part, d_model=whole)
    return [int(number) for number in str(error.value).split("num_heads=")[2].split(" or ")]


@pytest.mark.parametrize("whole", [1, 7, 12, 64, 360])
def test_the_divisors_next_to_the_given_number_are_suggested(without_annotations, whole):
    divisors = [n for n in range(1, whole + 1) if whole % n == 0]
    for part in range(2, whole + 20):
        if part not in divisors:
            below = [n for n in divisors if n < part][-1:]
            above = [n for n in divisors if n > part][:1]
            assert suggested(part, whole) == below + above


@pytest.mark.timeout(5)
def test_divisors_of_a_huge_number_are_suggested_without_listing_them_all():
    assert suggested(3540, 10**10 + 1) == [101, 3541]  # 101 × 3541 × 27961


def test_whole_numbers_may_be_those_of_numpy(without_annotations):
    require_whole(number=np.int64(3))
    require_divides(number=np.uint8(3), whole=np.int64(6))
    assert suggested(np.uint8(255), 300) == [150, 300]
    assert causal_mask(np.int32(3)).shape == (3, 3)


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (np.int64(0), "n=0 is below 1"),
        (np.float64(3), "n=.* is a float64; it must be a whole number"),
        (True, "n=True is a bool"),
        (torch.tensor(3), "is a Tensor; it must be a whole number"),
    ],
)
def test_what_is_no_whole_number_is_refused(without_annotations, number, says):
    with pytest.raises(ValueError, match=says):
        require_whole(n=number)
