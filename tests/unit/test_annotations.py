"""A shape in a signature is a tested statement: the test suite enforces it."""

import pytest
import torch
from jaxtyping import TypeCheckError

from course_lib.pooling import attention_pooling, gaussian_kernel
from course_lib.validation import unchecked


def test_a_wrong_shape_or_dtype_is_caught_by_the_annotation():
    with unchecked(), pytest.raises(TypeCheckError):
        attention_pooling(torch.rand(2, 2), torch.rand(3), torch.rand(3))
    with pytest.raises(TypeCheckError):
        gaussian_kernel(torch.tensor([1]))


@pytest.mark.usefixtures("without_annotations")
def test_a_learner_gets_the_error_in_words_instead():
    with pytest.raises(ValueError, match=r"queries has shape \(2, 2\)"):
        attention_pooling(torch.rand(2, 2), torch.rand(3), torch.rand(3))
