"""T5's relative bias and its buckets against Hugging Face."""

import pytest
import torch

from course_lib.transformer.positions import T5RelativeBias, t5_bucket
from tests.helpers.positions import BATCH, D_HEAD, D_MODEL, HEADS, learned
from tests.helpers.tensors import DTYPES, ROUNDING, check

# With 18 the float32 logarithm of 8 / 4 puts the distance 8 elsewhere than float64 would.
BUCKETS = [(32, 128), (8, 20), (4, 3), (10, 11), (18, 128)]


@pytest.mark.verifies(
    "course_lib.transformer.positions.t5_bucket",
    against="Hugging Face `T5Attention._relative_position_bucket`",
)
@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("num_buckets", "max_distance"), BUCKETS)
def test_t5_bucket_equals_hugging_face_at_every_distance(
    ledger, num_buckets, max_distance, bidirectional
):
    from transformers.models.t5.modeling_t5 import T5Attention

    sizes = {"num_buckets": num_buckets, "max_distance": max_distance}
    for relative in (torch.arange(-500, 501), torch.arange(-300, 300).view(2, 3, 100)):
        ours = t5_bucket(relative, bidirectional=bidirectional, **sizes)
        theirs = T5Attention._relative_position_bucket(relative, bidirectional, **sizes)
        ledger.compare(ours, theirs, within=0)
        assert ours.dtype == torch.int64 and ours.min() >= 0 and ours.max() < num_buckets


@pytest.mark.verifies(
    "course_lib.transformer.positions.T5RelativeBias",
    against="Hugging Face `T5Attention.compute_bias`",
)
@pytest.mark.parametrize(("num_buckets", "max_distance"), BUCKETS[:2])
@pytest.mark.parametrize("decoder", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_t5_relative_bias_equals_hugging_face(ledger, dtype, decoder, num_buckets, max_distance):
    from transformers.models.t5 import modeling_t5

    config = modeling_t5.T5Config(
        d_model=D_MODEL,
        d_kv=D_HEAD,
        num_heads=HEADS,
        is_decoder=decoder,
        relative_attention_num_buckets=num_buckets,
        relative_attention_max_distance=max_distance,
    )
    t5 = modeling_t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0).double()
    sizes = {"num_buckets": num_buckets, "max_distance": max_distance}
    positions = T5RelativeBias(HEADS, bidirectional=not decoder, **sizes).to(dtype)
    positions.table.data = torch.randn(num_buckets, HEADS, dtype=dtype)
    t5.relative_attention_bias.load_state_dict({"weight": positions.table})
    for queries, keys in ((1, 1), (40, 40), (3, 40), (1, 200)):
        theirs = t5.compute_bias(queries, keys, past_seen_tokens=keys - queries)[0]
        oracles = [t5.relative_attention_bias.weight]
        query = torch.zeros(BATCH, HEADS, queries, D_HEAD, dtype=dtype)
        for ours in (positions(queries, keys), positions.bias(query, keys)):
            ledger.compare(ours, theirs, within=ROUNDING[dtype])
            check(ledger, ours, [positions.table], theirs, oracles, 10 * ROUNDING[dtype])


def test_t5_relative_bias_parameters():
    positions = T5RelativeBias(300, num_buckets=12, max_distance=7)
    assert learned(positions) == {"table": (12, 300)}
    assert positions.table.std().item() == pytest.approx(0.02, rel=0.05)
    query = torch.zeros(1, 300, 4, D_HEAD, dtype=torch.bfloat16)
    assert positions.bias(query, 9).dtype == torch.bfloat16


def test_t5_buckets_of_the_farthest_whole_numbers():
    far = torch.tensor([-(2**63), -(2**40), 2**63 - 1])
    assert t5_bucket(far).tolist() == [15, 15, 31]
