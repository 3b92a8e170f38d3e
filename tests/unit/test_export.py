"""`torch.export`, ONNX and `torch.jit.trace` take models of all encodings, and the copy equals the model on other inputs."""

import pytest
import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter

from course_lib.transformer import (
    DecoderOnly,
    MultiHeadAttention,
    Transformer,
    TransformerConfig,
)
from course_lib.transformer.positions import ENCODINGS, make_positions
from tests.helpers.ids import encoding_id

SIZES = {"d_model": 12, "num_heads": 2, "num_kv_heads": 1, "d_ff": 16, "max_length": 16}
#: Without padding, so that a copy which keeps what it saw here would take every token for a word.
SEEN = torch.randint(1, 11, (3, 6)), torch.randint(1, 13, (3, 5))
#: Of other sizes; with padding, an empty source, and one whose target is empty too.
OTHER = torch.randint(1, 11, (4, 9)), torch.randint(1, 13, (4, 7))
OTHER[0][0, -3:] = OTHER[1][0, -2:] = OTHER[1][1, :2] = OTHER[0][2:] = OTHER[1][3] = 0

pytestmark = [
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),
    pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id),
]


class Causal(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x, is_causal=True).output


def model(kind, positions):
    config = TransformerConfig(
        target_vocabulary=13, source_vocabulary=11, encoder_layers=1, decoder_layers=1, positions=positions, **SIZES
    )  # fmt: skip
    return kind(config).eval()


def given(kind, tokens):
    return tokens if kind is Transformer else tokens[1:]


def test_trace_attention_without_a_mask(positions, without_annotations):
    """`is_causal` alone, in the kernel; a size is a tensor under tracing, and the kernel takes Python's bool."""
    inside = make_positions(positions, 12, 2, max_length=16).attention
    layer = Causal(MultiHeadAttention(12, 2, num_kv_heads=1, positions=inside))
    seen, other = torch.randn(2, 5, 12), torch.randn(3, 7, 12)
    copy = torch.jit.trace(layer, seen, check_trace=False)
    torch.testing.assert_close(copy(other), layer(other))


@pytest.mark.parametrize("kind", [Transformer, DecoderOnly])
def test_trace(kind, positions, without_annotations):
    ours = model(kind, positions)
    copy = torch.jit.trace(ours, given(kind, SEEN), check_trace=False)
    torch.testing.assert_close(copy(*given(kind, OTHER)), ours(*given(kind, OTHER)))


def test_export_and_onnx(positions, without_annotations):
    onnxruntime = pytest.importorskip("onnxruntime")
    ours, any_size = model(Transformer, positions), (torch.export.Dim.DYNAMIC,) * 2
    shapes = {"source": any_size, "target": any_size}
    with torch.no_grad():
        wanted = ours(*OTHER)
        program = torch.export.export(ours, SEEN, dynamic_shapes=shapes)
        torch.testing.assert_close(program.module()(*OTHER), wanted)
        onnx = torch.onnx.export(program, dynamo=True, verbose=False).model_proto
    session = onnxruntime.InferenceSession(onnx.SerializeToString())
    inputs = {one.name: tokens.numpy() for one, tokens in zip(session.get_inputs(), OTHER, strict=True)}  # fmt: skip
    torch.testing.assert_close(torch.from_numpy(session.run(None, inputs)[0]), wanted)


def test_tensorboard_draws_the_graph(positions, tmp_path, without_annotations):
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(model(DecoderOnly, positions), SEEN[1])
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) > 5_000
