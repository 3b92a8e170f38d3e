"""What a GPU would do, on tensors without numbers: nothing in a pass or a decode step waits for its results."""

import pytest
import torch
from torch import nn

from course_lib.transformer import DecoderOnly, Transformer
from course_lib.transformer.layers import Dropout
from course_lib.transformer.model import TransformerState
from course_lib.transformer.positions import ENCODINGS
from tests.helpers.decoding import sized
from tests.helpers.ids import encoding_id


@pytest.fixture
def gpu():
    """The meta device: not a CPU, and to read a number of a tensor there is an error."""
    with torch.device("meta"):
        yield


def tokens(length):
    return torch.ones(2, length, dtype=torch.int64)


def test_a_number_of_such_a_tensor_cannot_be_read(gpu):
    with pytest.raises(Exception, match="meta"):
        bool(tokens(3).any())


@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
def test_no_training_step_waits_for_the_gpu(gpu, positions, made):
    model = made(sized(positions=positions, dropout=0.1))
    read = (tokens(5), tokens(4)) if made is Transformer else (tokens(5),)
    logits = model(*read)
    logits.square().mean().backward()
    assert logits.device.type == "meta" and model.lm_head.weight.grad is not None


@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
def test_no_decode_step_waits_for_the_gpu(gpu, positions):
    model = DecoderOnly(sized(positions=positions)).eval()
    state = TransformerState(model.new_cache())
    with torch.no_grad():
        model(tokens(5), cache=state.cache)
        model.reserve(state, 4)
        for _ in range(3):
            assert model.decode_step(tokens(1)[:, 0], state).device.type == "meta"


def test_dropout_beyond_the_cpu_is_the_kernel_of_pytorch(gpu, monkeypatch):
    called = []
    monkeypatch.setattr(nn.Dropout, "forward", lambda self, x: called.append(x.shape) or x)
    Dropout(0.5)(torch.ones(3, 2))
    assert called == [(3, 2)]
