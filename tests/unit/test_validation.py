"""The functions that name a wrong argument: what they suggest, and what they take."""

import numpy as np
import pytest
import torch

from course_lib.masks import causal_mask
from course_lib.validation import (
    require_divides,
    require_one_of,
    require_whole,
)

# Annotations ask for Python's own numbers; a learner, for whom they are not enforced, may pass NumPy's.
pytestmark = pytest.mark.usefixtures("without_annotations")


# --- numbers ---------------------------------------------------------------------------------


def suggested(part, whole):
    with pytest.raises(ValueError, match="try num_heads=") as error:
        require_divides(num_heads=part, d_model=whole)
    return [int(number) for number in str(error.value).split("num_heads=")[2].split(" or ")]


@pytest.mark.parametrize("whole", [1, 2, 7, 10, 12, 18, 64, 97, 360])
def test_the_divisors_next_to_the_given_number_are_suggested(whole):
    divisors = [n for n in range(1, whole + 1) if whole % n == 0]
    for part in range(2, whole + 20):
        if part not in divisors:
            below = [n for n in divisors if n < part][-1:]
            above = [n for n in divisors if n > part][:1]
            assert suggested(part, whole) == below + above


@pytest.mark.timeout(5)
def test_divisors_of_a_huge_number_are_suggested_without_listing_them_all():
    whole = 10**10 + 1  # 101 × 3541 × 27961
    assert suggested(3, whole) == [1, 101]
    assert suggested(100, whole) == [1, 101]
    assert suggested(3540, whole) == [101, 3541]


@pytest.mark.parametrize("number", [3, np.int64(3), np.int32(3), np.uint8(3)])
def test_whole_numbers_may_be_those_of_numpy(number):
    require_whole(number=number)
    require_divides(number=number, whole=np.int64(6))
    assert suggested(np.uint8(255), 300) == [150, 300]
    assert causal_mask(number).shape == (3, 3)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: require_whole(n=np.int64(0)), "n=0 is below 1"),
        (lambda: require_whole(0, n=np.int64(-2)), "n=-2 is below 0"),
        (lambda: require_whole(n=np.float64(3)), "n=.* is a float64; it must be a whole number"),
        (lambda: require_whole(n=np.bool_(True)), "n=.* is a bool"),
        (lambda: require_whole(n=torch.tensor(3)), "is a Tensor; it must be a whole number"),
        (
            lambda: require_one_of(("relu", "gelu"), activation="rellu"),
            "activation='rellu' is unknown; it must be one of 'relu', 'gelu'. Did you mean 'relu'?",
        ),
    ],
)
def test_bad_input_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call()
