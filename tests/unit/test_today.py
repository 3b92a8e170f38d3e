"""The mechanisms of the models of today against the modules of `transformers`, with random weights shared."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from course_lib.topics.today import (
    CompressedAttention,
    ExpertLayer,
    GatedDeltaLayer,
    HyperConnection,
    Indexer,
    LatentAttention,
    Router,
    Summaries,
    attend_to,
    delta_rule,
    delta_rule_in_chunks,
    doubly_stochastic,
    index_scores,
    keep_best,
    summaries,
    summary_mask,
)
from course_lib.transformer.cache import KeyValueCache
from course_lib.transformer.masks import causal_mask
from course_lib.transformer.positions import rotary
from tests.helpers.today import compare_modules, randomise, share

MODEL, LENGTH = 24, 11
LESSON = Path(__file__).parents[2] / "notebooks" / "15_models_of_today.ipynb"


def modelling(name):
    """The modelling file of a model, of a `transformers` that has it: `make lowest` installs an older one."""
    return pytest.importorskip(f"transformers.models.{name}.modeling_{name}")


def causal(dtype):
    return torch.zeros(LENGTH, LENGTH, dtype=dtype).masked_fill(~causal_mask(LENGTH), -1e30)[
        None, None
    ]


def angles(d_rope, dtype, base=10000.0):
    """Cosines and sines as the package hands them to its layers, here exact in float64."""
    inverse = base ** (-torch.arange(0, d_rope, 2, dtype=torch.float64) / d_rope)
    angle = torch.outer(torch.arange(LENGTH, dtype=torch.float64), inverse).repeat(1, 2)[None]
    return angle.cos().to(dtype), angle.sin().to(dtype)


# --- latent attention ------------------------------------------------------------------------

LATENT = {"d_latent": 10, "d_nope": 6, "d_rope": 4, "d_value": 5}
LATENT_NAMES = {
    "kv_down.weight": "kv_a_proj_with_mqa.weight",
    "kv_norm.weight": "kv_a_layernorm.weight",
    "kv_up.weight": "kv_b_proj.weight",
    "out_proj.weight": "o_proj.weight",
}
QUERIES = {
    None: {"q_up.weight": "q_proj.weight"},
    8: {
        "q_down.weight": "q_a_proj.weight",
        "q_norm.weight": "q_a_layernorm.weight",
        "q_up.weight": "q_b_proj.weight",
    },
}


def deepseek_attention(dtype, d_query, layout):
    """A tiny attention layer of DeepSeek-V3 with random weights, ours with the same, and the names of both."""
    module = modelling("deepseek_v3")
    config = module.DeepseekV3Config(
        hidden_size=MODEL, num_attention_heads=3, num_key_value_heads=3, q_lora_rank=d_query, kv_lora_rank=10,
        qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5, num_hidden_layers=1,
        rope_interleave=layout == "interleaved", attn_implementation="eager",
    )  # fmt: skip
    theirs = randomise(module.DeepseekV3Attention(config, 0)).to(dtype)
    ours = LatentAttention(MODEL, 3, **LATENT, d_query=d_query, layout=layout).to(dtype)
    names = LATENT_NAMES | QUERIES[d_query]
    return share(ours, theirs, names), theirs, names


@pytest.mark.verifies(
    "course_lib.topics.today.LatentAttention", against="Hugging Face `DeepseekV3Attention`"
)
@pytest.mark.parametrize("absorbed", [False, True])
@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("d_query", [None, 8])
@pytest.mark.parametrize(("dtype", "within"), [(torch.float32, 1e-5), (torch.float64, 1e-6)])
def test_latent_attention_equals_deepseek(ledger, dtype, within, d_query, layout, absorbed):
    """In float64 too theirs takes softmax and norms in float32, so that the outputs differ by their rounding."""
    ours, theirs, names = deepseek_attention(dtype, d_query, layout)
    theirs_of = lambda x: theirs(x, angles(4, dtype), causal(dtype))[0]  # noqa: E731
    x = torch.randn(2, LENGTH, MODEL, dtype=dtype)
    compare_modules(
        ledger, (lambda x: ours(x, absorbed=absorbed), ours), (theirs_of, theirs), x, names, within
    )


@pytest.mark.parametrize("absorbed", [False, True])
def test_latent_attention_gives_the_same_with_a_cache_of_one_latent_per_token(absorbed):
    ours = randomise(LatentAttention(MODEL, 3, **LATENT, d_query=8)).double()
    x = torch.randn(2, LENGTH, MODEL, dtype=torch.float64)
    cache = KeyValueCache()
    steps = [ours(part, cache=cache, absorbed=absorbed) for part in x.split([4, 1, 1, 5], dim=1)]
    torch.testing.assert_close(torch.cat(steps, dim=1), ours(x), rtol=0, atol=1e-12)
    assert cache.nbytes == 2 * LENGTH * (10 + 4) * 8


# --- the indexer -----------------------------------------------------------------------------


@pytest.mark.verifies("course_lib.topics.today.index_scores", against="its equation, pair by pair")
def test_index_scores_equal_their_equation(ledger):
    query, key = torch.randn(2, 3, 5, 4).double(), torch.randn(2, 7, 4).double()
    weight = torch.randn(2, 5, 3).double()
    expected = torch.zeros(2, 5, 7, dtype=torch.float64)
    for b in range(2):
        for i in range(5):
            for j in range(7):
                for h in range(3):
                    dot = (query[b, h, i] * key[b, j]).sum().item()
                    expected[b, i, j] += weight[b, i, h] * max(0.0, dot)
    ledger.compare(index_scores(query, key, weight), expected, within=1e-12)


@pytest.mark.verifies(
    "course_lib.topics.today.keep_best", against="sorting the scores of each query"
)
@pytest.mark.parametrize("block", [1, 3])
@pytest.mark.parametrize("k", [1, 2, 20])
def test_keep_best_keeps_the_allowed_keys_of_the_best_blocks(ledger, k, block):
    scores, mask = torch.randn(2, LENGTH, LENGTH), causal_mask(LENGTH)
    kept = keep_best(scores, k, mask, block=block)
    for b in range(2):
        for i in range(LENGTH):
            blocks = {}
            for j in range(i + 1):
                blocks[j // block] = max(blocks.get(j // block, -99.0), scores[b, i, j].item())
            best = sorted(blocks, key=blocks.get)[-k:]
            expected = [j <= i and j // block in best for j in range(LENGTH)]
            assert kept[b, i].tolist() == expected
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.topics.today.Indexer", against="Hugging Face `DeepseekV32Indexer`"
)
def test_the_indexer_chooses_what_deepseek_chooses(ledger):
    module = modelling("deepseek_v32")
    config = module.DeepseekV32Config(
        hidden_size=MODEL,
        q_lora_rank=8,
        index_n_heads=3,
        index_head_dim=10,
        qk_rope_head_dim=4,
        index_topk=4,
    )
    theirs = randomise(module.DeepseekV32Indexer(config, 0))
    names = {
        "q_proj.weight": "wq_b.weight",
        "k_proj.weight": "wk.weight",
        "k_norm.weight": "k_norm.weight",
        "k_norm.bias": "k_norm.bias",
        "weight_proj.weight": "weights_proj.weight",
    }
    ours = share(Indexer(MODEL, 8, 3, 10, d_rope=4, k=4), theirs, names)
    x, latent = torch.randn(2, LENGTH, MODEL), torch.randn(2, LENGTH, 8)
    mask = causal(torch.float32)[0]
    chosen = theirs(x, latent, angles(4, torch.float32), mask, None).long()
    expected = torch.zeros(2, LENGTH, LENGTH, dtype=torch.bool).scatter(-1, chosen, True)
    assert (ours(x, latent) == (expected & causal_mask(LENGTH))).all()
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.topics.today.keep_best", against="Hugging Face `MiniMaxM3VLIndexer`"
)
@pytest.mark.parametrize("local", [0, 1, 2])
def test_blocks_are_chosen_as_minimax_chooses_them(ledger, local):
    module = modelling("minimax_m3_vl")
    config = module.MiniMaxM3VLTextConfig(
        hidden_size=MODEL, num_attention_heads=4, num_key_value_heads=2, index_n_heads=2, index_head_dim=6,
        index_block_size=3, index_topk_blocks=2, index_local_blocks=local,
    )  # fmt: skip
    theirs = randomise(module.MiniMaxM3VLIndexer(config, 0))
    x, positions = torch.randn(2, LENGTH, MODEL), torch.arange(LENGTH).expand(2, -1)
    cos, sin = angles(6, torch.float32)
    blocks = theirs(x, (cos, sin), None, positions)
    mask = (
        theirs.build_block_mask(blocks, None, LENGTH, torch.float32, "cpu", positions)[:, ::2] == 0
    )
    query = theirs.q_norm(theirs.q_proj(x).unflatten(-1, (2, 6))).transpose(1, 2)
    key = theirs.k_norm(theirs.k_proj(x))[:, None]
    query, key = module.apply_rotary_pos_emb(query, key, cos, sin)
    ours = keep_best(query @ key.mT, 2, causal_mask(LENGTH), block=3, local=local)
    assert (ours == mask).all()
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.topics.today.attend_to",
    against="PyTorch's attention with a mask of the chosen keys",
)
def test_attending_to_the_chosen_keys_equals_masking_the_others(ledger):
    query, key = torch.randn(2, 3, 1, 4).double(), torch.randn(2, 3, 9, 4).double()
    value = torch.randn(2, 3, 9, 5).double()
    chosen = torch.stack([torch.randperm(9)[:4] for _ in range(2)])
    mask = torch.zeros(2, 9, dtype=torch.bool).scatter(-1, chosen, True)[:, None, None]
    expected = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    ledger.compare(attend_to(query, key, value, chosen), expected, within=1e-12)


# --- summaries beside a window ----------------------------------------------------------------


@pytest.mark.verifies("course_lib.topics.today.summaries", against="its equation, block by block")
@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("length", [3, 14])
def test_summaries_equal_their_equation(ledger, length, overlap):
    m, d = 4, 5
    c, z = (torch.randn(2, length, d * (1 + overlap)).double().requires_grad_() for _ in "cz")
    bias = torch.randn(m, d * (1 + overlap)).double().requires_grad_()
    rows = []
    for w in range(length // m):
        own = slice(w * m, (w + 1) * m)
        vectors, logits = c[:, own, -d:], z[:, own, -d:] + bias[:, -d:]
        if overlap and w:
            before = slice((w - 1) * m, w * m)
            vectors = torch.cat([c[:, before, :d], vectors], dim=1)
            logits = torch.cat([z[:, before, :d] + bias[:, :d], logits], dim=1)
        weights = logits.exp() / logits.exp().sum(dim=1, keepdim=True)
        rows.append((weights * vectors).sum(dim=1))
    expected = torch.stack(rows, dim=1) if rows else torch.zeros(2, 0, d).double()
    output = summaries(c, z, bias, overlap=overlap)
    ledger.compare(output, expected, within=1e-12)
    if rows:
        mix = torch.randn_like(expected)
        ours, theirs = (torch.autograd.grad(one, (c, z, bias), mix) for one in (output, expected))
        for one, other in zip(ours, theirs, strict=True):
            ledger.compare(one, other, within=1e-12, backward=True)


@pytest.mark.verifies(
    "course_lib.topics.today.summary_mask", against="its definition, query by query"
)
def test_a_query_sees_the_summaries_that_hold_no_later_token(ledger):
    for length, m in ((3, 4), (11, 3), (12, 4)):
        expected = [[w * m + m - 1 <= i for w in range(length // m)] for i in range(length)]
        assert summary_mask(length, m).tolist() == expected
    ledger.holds()


COMPRESSED_NAMES = {
    "q_down.weight": "q_a_proj.weight",
    "q_norm.weight": "q_a_norm.weight",
    "q_up.weight": "q_b_proj.weight",
    "kv_proj.weight": "kv_proj.weight",
    "kv_norm.weight": "kv_norm.weight",
    "sinks": "sinks",
    "out_down": "o_a_proj.weight",
    "out_proj.weight": "o_b_proj.weight",
}
CHOOSING_NAMES = {
    "index_q.weight": "compressor.indexer.q_b_proj.weight",
    "index_weight.weight": "compressor.indexer.scorer.weights_proj.weight",
}


def summary_names(ours, theirs):
    parts = {"value_proj.weight": "kv_proj.weight", "gate_proj.weight": "gate_proj.weight"}
    parts |= {"bias": "position_bias", "norm.weight": "kv_norm.weight"}
    return {f"{ours}.{one}": f"{theirs}.{other}" for one, other in parts.items()}


#: Kind of layer → our options, and the names of our parameters that have a gradient.
COMPRESSED = {
    "sliding_attention": ({}, {}),
    "heavily_compressed_attention": ({"rate": 3}, summary_names("summaries", "compressor")),
    "compressed_sparse_attention": (
        {"rate": 2, "overlap": True, "indexer": (3, 10), "k": 2},
        summary_names("summaries", "compressor"),
    ),
}


@pytest.mark.verifies(
    "course_lib.topics.today.CompressedAttention", against="Hugging Face `DeepseekV4Attention`"
)
@pytest.mark.verifies(
    "course_lib.topics.today.Summaries",
    against="the compressors of Hugging Face's `DeepseekV4Attention`",
)
@pytest.mark.parametrize("kind", COMPRESSED)
@pytest.mark.parametrize(("dtype", "within"), [(torch.float32, 1e-5), (torch.float64, 1e-6)])
def test_compressed_attention_equals_deepseek(ledger, dtype, within, kind):
    """In float64 too theirs takes norms, rotations and the softmax of summaries in float32."""
    module = modelling("deepseek_v4")
    config = module.DeepseekV4Config(
        hidden_size=MODEL, num_attention_heads=4, head_dim=12, q_lora_rank=8, o_groups=2, o_lora_rank=5,
        sliding_window=4, index_n_heads=3, index_head_dim=10, index_topk=2, partial_rotary_factor=0.5,
        num_hidden_layers=1, layer_types=[kind], attn_implementation="eager",
        compress_rates={"compressed_sparse_attention": 2, "heavily_compressed_attention": 3},
    )  # fmt: skip
    options, names = COMPRESSED[kind]
    theirs = randomise(module.DeepseekV4Attention(config, 0)).to(dtype)
    base = 10_000.0 if kind == "sliding_attention" else 160_000.0
    ours = CompressedAttention(
        MODEL, 4, 12, d_query=8, d_rope=6, window=4, groups=2, d_out=5, base=base, **options
    ).to(dtype)
    names = COMPRESSED_NAMES | names
    chooses = summary_names("index_summaries", "compressor.indexer") | CHOOSING_NAMES
    share(ours, theirs, names | (chooses if "indexer" in options else {}))
    cos, sin = (one[..., :3] for one in angles(6, dtype, base))
    positions = {"main": (cos, sin), "compress": (cos, sin)}
    past = torch.ones(LENGTH, LENGTH).tril(-4).bool()
    window = causal(dtype).masked_fill(past, -1e30).expand(2, -1, -1, -1)

    def other(x):
        return theirs(x, positions, torch.arange(LENGTH).expand(len(x), -1), window)[0]

    x = torch.randn(2, LENGTH, MODEL, dtype=dtype)
    compare_modules(ledger, (ours, ours), (other, theirs), x, names, within)


def test_an_output_depends_on_distances_alone_because_the_rotation_is_taken_back(monkeypatch):
    """All positions 100 later: with a rotation that stayed in the values the output would change."""
    from course_lib.topics.today import compressed

    ours = randomise(
        CompressedAttention(
            MODEL, 4, 12, d_query=8, d_rope=6, window=4, groups=2, d_out=5, rate=3
        )
    ).double()  # fmt: skip
    x = torch.randn(2, LENGTH, MODEL, dtype=torch.float64)
    expected = ours(x)
    plain = compressed._rotate_last
    later = lambda x, p, *more: plain(x, p - 100 if (p < 0).any() else p + 100, *more)  # noqa: E731
    monkeypatch.setattr(compressed, "_rotate_last", later)
    torch.testing.assert_close(ours(x), expected, rtol=0, atol=1e-10)


@pytest.fixture(scope="module")
def page():
    """Functions of lesson 15, from its own cells."""
    names = {"torch": torch, "causal_mask": causal_mask, "rotary": rotary}
    for cell in json.loads(LESSON.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if source.startswith(("def shared_head", "def summaries")):
            exec(source.split("\n\n\nq, kv")[0], names)
    return names


def test_the_lessons_shared_head_and_summaries_are_deepseeks(page):
    """Heads after the rotation is taken back, and means before their norm, seen inside the modules."""
    module = modelling("deepseek_v4")
    config = module.DeepseekV4Config(
        hidden_size=32, num_attention_heads=8, head_dim=4, num_hidden_layers=1,
        layer_types=["sliding_attention"], partial_rotary_factor=1.0,
        compress_rates={"heavily_compressed_attention": 3}, attn_implementation="eager",
    )  # fmt: skip
    layer = randomise(module.DeepseekV4Attention(config, 0))
    pool = randomise(module.DeepseekV4HCACompressor(config))
    layer.sinks.data.fill_(-1e4)  # none; and all tokens fit into the window
    seen = []
    for part in (layer.q_b_norm, layer.kv_norm, layer.o_a_proj, pool.kv_norm):
        part.register_forward_hook(lambda _, args, output: seen.append((args[0], output)))
    x, positions = torch.randn(1, LENGTH, 32), torch.arange(LENGTH)[None]
    rotations = {"main": module.DeepseekV4RotaryEmbedding(config)(x, positions, "main")}
    with torch.no_grad():
        layer(x, rotations, positions, causal(torch.float32))
        pool(x, None, positions, None, 0)
    (_, q), (_, kv), (heads, _), (means, _) = seen
    ours = page["shared_head"](q[0], kv[0]).transpose(0, 1)  # (length, heads, d)
    torch.testing.assert_close(ours, heads.view(LENGTH, 8, 4), rtol=0, atol=1e-5)
    c, z = x[0] @ pool.kv_proj.weight.T, x[0] @ pool.gate_proj.weight.T
    ours = page["summaries"](c, z, pool.position_bias)
    torch.testing.assert_close(ours[None], means, rtol=0, atol=1e-5)


# --- the gated delta rule --------------------------------------------------------------------


def sequence(length=130, dtype=torch.float64):
    """Queries, keys of length 1, values, decays and β of two heads."""
    q, k = (
        nn.functional.normalize(torch.randn(1, 2, length, 6, dtype=dtype), dim=-1) for _ in "qk"
    )
    v = torch.randn(1, 2, length, 5, dtype=dtype)
    decay = -torch.rand(1, 2, length, dtype=dtype)
    return q, k, v, decay, torch.rand(1, 2, length, dtype=dtype)


@pytest.mark.verifies(
    "course_lib.topics.today.delta_rule",
    "course_lib.topics.today.delta_rule_in_chunks",
    against="its equation with matrices: S ← e^g (I − β k kᵀ) S + β k vᵀ",
)
@pytest.mark.parametrize("rule", [delta_rule, delta_rule_in_chunks])
@pytest.mark.parametrize("begun", [False, True])
def test_the_delta_rule_equals_its_equation(ledger, rule, begun):
    inputs = [x.requires_grad_() for x in sequence()]
    state = torch.randn(1, 2, 6, 5, dtype=torch.float64) if begun else None
    q, k, v, decay, beta = (x[0] for x in inputs)
    memory = [torch.zeros(6, 5).double() if state is None else state[0, h] for h in range(2)]
    rows = []
    for t in range(130):
        for h in range(2):
            outer = torch.outer(k[h, t], k[h, t])
            erase = torch.eye(6).double() - beta[h, t] * outer
            written = beta[h, t] * torch.outer(k[h, t], v[h, t])
            memory[h] = decay[h, t].exp() * (erase @ memory[h]) + written
        rows.append(torch.stack([q[h, t] @ memory[h] for h in range(2)]))
    expected, last = torch.stack(rows, dim=1)[None], torch.stack(memory)[None]
    output, final = rule(*inputs, state)
    ledger.compare(output, expected, within=1e-10)
    ledger.compare(final, last, within=1e-10)
    mix = torch.randn_like(expected)
    ours = torch.autograd.grad(output, inputs, mix, retain_graph=True)
    theirs = torch.autograd.grad(expected, inputs, mix)
    for one, other in zip(ours, theirs, strict=True):
        ledger.compare(one, other, within=1e-10, backward=True)


@pytest.mark.parametrize("chunk", [1, 7, 64, 500])
def test_chunks_of_every_length_give_the_same(chunk):
    inputs = sequence()
    output, state = delta_rule_in_chunks(*inputs, chunk=chunk)
    expected, last = delta_rule(*inputs)
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(state, last, rtol=0, atol=1e-12)


DELTA_NAMES = {
    "qkv_proj.weight": "in_proj_qkv.weight",
    "conv.weight": "conv1d.weight",
    "beta_proj.weight": "in_proj_b.weight",
    "decay_proj.weight": "in_proj_a.weight",
    "decay_bias": "dt_bias",
    "log_rate": "A_log",
    "gate_proj.weight": "in_proj_z.weight",
    "norm.weight": "norm.weight",
    "out_proj.weight": "out_proj.weight",
}
DELTA = {"key_heads": 2, "value_heads": 4, "d_key": 6, "d_value": 5}


@pytest.mark.verifies(
    "course_lib.topics.today.GatedDeltaLayer", against="Hugging Face `Qwen3_5GatedDeltaNet`"
)
@pytest.mark.parametrize("chunk", [1, 64])
def test_the_gated_delta_layer_equals_qwen(ledger, chunk):
    module = modelling("qwen3_5")
    config = module.Qwen3_5TextConfig(
        hidden_size=MODEL, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=6,
        linear_value_head_dim=5, num_hidden_layers=4,
    )  # fmt: skip
    theirs = randomise(module.Qwen3_5GatedDeltaNet(config, 0), 0.5)
    ours = share(GatedDeltaLayer(MODEL, **DELTA), theirs, DELTA_NAMES)
    x = torch.randn(2, 70, MODEL)
    run = lambda x: ours(x, chunk=chunk)[0]  # noqa: E731
    compare_modules(ledger, (run, ours), (theirs, theirs), x, DELTA_NAMES, 1e-5)


def test_the_gated_delta_layer_goes_on_from_its_state_whose_size_does_not_grow():
    layer = randomise(GatedDeltaLayer(MODEL, **DELTA), 0.5).double()
    x = torch.randn(2, 90, MODEL, dtype=torch.float64)
    state, parts, sizes = None, [], set()
    for part in x.split([70, 1, 1, 18], dim=1):
        output, state = layer(part, state)
        parts.append(output)
        sizes.add(tuple(one.numel() for one in state))
    torch.testing.assert_close(torch.cat(parts, dim=1), layer(x)[0], rtol=0, atol=1e-11)
    assert sizes == {(2 * (12 + 12 + 20) * 3, 2 * 4 * 6 * 5)}


# --- experts ---------------------------------------------------------------------------------


def deepseek_moe(dtype):
    module = modelling("deepseek_v3")
    config = module.DeepseekV3Config(
        hidden_size=MODEL, moe_intermediate_size=7, n_routed_experts=12, n_shared_experts=2, num_experts_per_tok=3,
        n_group=4, topk_group=2, routed_scaling_factor=2.5, attn_implementation="eager",
    )  # fmt: skip
    theirs = randomise(module.DeepseekV3MoE(config), 0.5).to(dtype)
    theirs.gate.e_score_correction_bias.normal_(std=0.3)
    router = Router(MODEL, 12, 3, scores="sigmoid", scale=2.5, groups=4, kept_groups=2)
    return theirs, ExpertLayer(router, 7, d_shared=14).to(dtype)


EXPERT_NAMES = {
    "router.weight": "gate.weight",
    "router.bias": "gate.e_score_correction_bias",
    "up_gate": "experts.gate_up_proj",
    "down": "experts.down_proj",
    "shared.gate_proj.weight": "shared_experts.gate_proj.weight",
    "shared.up_proj.weight": "shared_experts.up_proj.weight",
    "shared.down_proj.weight": "shared_experts.down_proj.weight",
}


@pytest.mark.verifies("course_lib.topics.today.ExpertLayer", against="Hugging Face `DeepseekV3MoE`")
@pytest.mark.verifies(
    "course_lib.topics.today.Router",
    "course_lib.topics.today.Routing",
    against="Hugging Face `DeepseekV3TopkRouter`",
)
@pytest.mark.parametrize(("dtype", "within"), [(torch.float32, 1e-5), (torch.float64, 1e-5)])
def test_experts_with_groups_bias_and_a_shared_one_equal_deepseek(ledger, dtype, within):
    theirs, ours = deepseek_moe(dtype)  # whose router works in float32, also in a model in float64
    share(ours, theirs, EXPERT_NAMES)
    x = torch.randn(2, LENGTH, MODEL, dtype=dtype)
    compare_modules(ledger, (ours, ours), (theirs, theirs), x, EXPERT_NAMES, within)
    _, weights, experts = theirs.gate(x)
    mine = ours.router(x.flatten(0, 1))
    order, other = mine.experts.argsort(-1), experts.argsort(-1)
    assert (mine.experts.gather(-1, order) == experts.gather(-1, other)).all()
    ledger.compare(mine.weights.gather(-1, order), weights.gather(-1, other), within=within)


@pytest.mark.verifies("course_lib.topics.today.Router", against="Hugging Face `GptOssTopKRouter`")
@pytest.mark.verifies(
    "course_lib.topics.today.Router", against="Hugging Face `Qwen3NextTopKRouter`"
)
@pytest.mark.parametrize("name", ["gpt_oss", "qwen3_next"])
def test_a_softmax_of_the_best_and_the_best_of_a_softmax_are_one_router(ledger, name):
    module = modelling(name)
    kind = {"gpt_oss": "GptOss", "qwen3_next": "Qwen3Next"}[name]
    sizes = {"num_local_experts": 12} if name == "gpt_oss" else {"num_experts": 12}
    config = getattr(module, f"{kind}Config")(hidden_size=MODEL, num_experts_per_tok=3, **sizes)
    theirs = randomise(getattr(module, f"{kind}TopKRouter")(config), 0.5)
    if name == "gpt_oss":
        theirs.bias.data.zero_()  # a bias of the logits, which ours lacks
    ours = Router(MODEL, 12, 3)
    ours.weight.data = theirs.weight.detach().clone()
    x = torch.randn(LENGTH, MODEL)
    _, weights, experts = theirs(x)
    mine = ours(x)
    assert (mine.experts == experts).all()
    ledger.compare(mine.weights, weights, within=1e-6)


def test_balancing_moves_tokens_from_busy_experts_to_idle_ones():
    router, x = Router(MODEL, 8, 2, scores="sigmoid"), torch.randn(400, MODEL) + 1
    before = router(x).experts.flatten().bincount(minlength=8)
    for _ in range(300):
        router.balance(router(x).experts, rate=1e-2)
    after = router(x).experts.flatten().bincount(minlength=8)
    assert after.max() < 1.3 * after.float().mean() < 0.8 * before.max()
    assert torch.equal(
        router(x).scores, (x @ router.weight.mT).sigmoid()
    )  # the bias weighs nothing


# --- streams ---------------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.topics.today.HyperConnection", against="Hugging Face `DeepseekV4HyperConnection`"
)
def test_hyper_connections_equal_deepseek(ledger):
    module = modelling("deepseek_v4")
    config = module.DeepseekV4Config(hidden_size=MODEL, hc_mult=3, num_hidden_layers=2)
    theirs = randomise(module.DeepseekV4HyperConnection(config), 0.5)
    names = {"weight": "fn", "base": "base", "scale": "scale"}
    ours = share(HyperConnection(MODEL, 3), theirs, names)
    transform = nn.Linear(MODEL, MODEL)

    def mine(streams):
        x, b, mix = ours(streams)
        return ours.add(streams, transform(x), b, mix)

    def other(streams):
        post, comb, x = theirs(streams)
        return post[..., None] * transform(x)[..., None, :] + comb.mT @ streams

    x = torch.randn(2, LENGTH, 3, MODEL)
    compare_modules(ledger, (mine, ours), (other, theirs), x, names, 1e-5)


@pytest.mark.verifies(
    "course_lib.topics.today.doubly_stochastic",
    against="its definition: rows and columns sum to 1, and it is D₁ exp(logits) D₂",
)
def test_rows_and_columns_sum_to_one_and_only_they_are_scaled(ledger):
    logits = torch.randn(5, 4, 4, dtype=torch.float64)
    matrix = doubly_stochastic(logits, 200, eps=0.0)
    ones = torch.ones(5, 4, dtype=torch.float64)
    ledger.compare(matrix.sum(-1), ones, within=1e-10)
    ledger.compare(matrix.sum(-2), ones, within=1e-10)
    ratio = matrix.log() - logits  # row term + column term, so every 2 × 2 difference is 0
    double = ratio - ratio[:, :1] - ratio[:, :, :1] + ratio[:, :1, :1]
    ledger.compare(double, torch.zeros_like(double), within=1e-10)


# --- all of them -----------------------------------------------------------------------------


def layers():
    """Each layer as a function of vectors."""
    latent, indexer = (
        LatentAttention(MODEL, 3, **LATENT, d_query=8),
        Indexer(MODEL, MODEL, 3, 10, d_rope=4, k=4),
    )
    delta, router, streams = (
        GatedDeltaLayer(MODEL, **DELTA),
        Router(MODEL, 12, 3),
        HyperConnection(MODEL, 3),
    )
    compressed = CompressedAttention(
        MODEL, 4, 12, d_query=8, d_rope=6, window=4, groups=2, d_out=5, rate=3, overlap=True, indexer=(3, 10), k=2,
    )  # fmt: skip
    return {
        "latent": latent,
        "compressed": compressed,
        "absorbed": lambda x: latent(x, absorbed=True),
        "indexer": lambda x: indexer(x, x).float(),
        "delta": lambda x: delta(x, chunk=4)[0],
        "router": lambda x: router(x.flatten(0, 1)).weights,
        "streams": lambda x: streams(torch.stack([x, x + 1, x * 2], dim=-2))[0],
    }


@pytest.mark.parametrize("name", layers())
def test_compile_today(as_one_graph, name):
    layer, x = layers()[name], torch.randn(2, LENGTH, MODEL)
    torch.testing.assert_close(as_one_graph(layer)(x), layer(x))


@pytest.mark.parametrize("name", ["latent", "absorbed", "indexer", "compressed", "delta"])
def test_no_output_depends_on_later_tokens(name):
    layer, x = layers()[name], torch.randn(2, LENGTH, MODEL)
    other = x.clone()
    other[:, 6:] = torch.randn(2, LENGTH - 6, MODEL)
    torch.testing.assert_close(layer(x)[:, :6], layer(other)[:, :6])


def compressed_layer(**changes):
    sizes = {"d_query": 4, "d_rope": 2, "window": 3, "groups": 2, "d_out": 3}
    return CompressedAttention(8, 4, 4, **sizes | changes)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: Router(8, 12, 3, scores="relu"), "scores='relu' is unknown"),
        (lambda: Router(8, 12, 3, groups=5), "num_experts=12 is not divisible by groups=5"),
        (lambda: Router(8, 12, 4, groups=4), "k=4 is more than the 3 experts"),
        (
            lambda: GatedDeltaLayer(8, key_heads=3, value_heads=4, d_key=2, d_value=2),
            "is not divisible",
        ),
        (lambda: keep_best(torch.zeros(2, 2), 0, causal_mask(2)), "k=0 is below 1"),
        (lambda: summary_mask(4, 0), "m=0 is below 1"),
        (lambda: Summaries(8, 4, 0, d_rope=2), "rate=0 is below 1"),
        (lambda: compressed_layer(window=0), "window=0 is below 1"),
        (lambda: compressed_layer(groups=3), "num_heads=4 is not divisible by groups=3"),
        (lambda: compressed_layer(rate=2, k=3), "an indexer needs k"),
        (lambda: compressed_layer(indexer=(2, 4), k=3), "and summaries to choose from"),
        (lambda: doubly_stochastic(torch.zeros(2, 2), 0), "iterations=0 is below 1"),
    ],
)
def test_what_would_be_wrong_is_refused(without_annotations, call, says):
    with pytest.raises(ValueError, match=says):
        call()
