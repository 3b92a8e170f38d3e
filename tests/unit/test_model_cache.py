"""What models keep while they write: cached = uncached, and every piece where it belongs."""

import itertools

import pytest
import torch

from course_lib.transformer import DecoderOnly, Transformer, TransformerConfig
from course_lib.transformer.positions import ENCODINGS
from tests.helpers.ids import encoding_id
from tests.helpers.transformer import randomized, words

# No two axes are equally long, so that none can be taken for another.
BATCH, HEADS, KV_HEADS, D_HEAD, SOURCE, TARGET = 3, 4, 2, 6, 5, 7
D_MODEL, DECODER = HEADS * D_HEAD, 2
TARGETS, SOURCES, PAD = 11, 13, 0


def sized(**choices):
    sizes = {
        "target_vocabulary": TARGETS, "source_vocabulary": SOURCES, "d_model": D_MODEL,
        "num_heads": HEADS, "num_kv_heads": KV_HEADS, "encoder_layers": 1, "decoder_layers": DECODER,
        "d_ff": 9, "dropout": 0.0, "max_length": 12, "norm": "pre",
    }  # fmt: skip
    return TransformerConfig(**(sizes | choices))


def source_and_target():
    """Sources of unequal length; targets with padding behind, inside, and in front."""
    source, target = words(SOURCES, SOURCE, 0, 2, 4), words(TARGETS, TARGET, 0, 2, 0)
    target[0, 2] = target[2, 0] = PAD
    return source, target


def in_chunks(tokens, chunks, read):
    """What `read` returns for some tokens at a time."""
    ends = list(itertools.accumulate(chunks))
    assert ends[-1] == tokens.shape[1]
    return torch.cat(
        [read(tokens[:, end - n : end]) for n, end in zip(chunks, ends, strict=True)], 1
    )


def written(model, target, memory, chunks):
    cache = model.new_cache()
    return in_chunks(target, chunks, lambda new: model.decode(new, memory, cache=cache))


def continued(model, tokens, chunks):
    cache = model.new_cache()
    return in_chunks(tokens, chunks, lambda new: model(new, cache=cache))


CHUNKS = [(1,) * TARGET, (3, 1, 3), (1, 6)]
CASES = [
    pytest.param(name, norm, kv_heads, id=f"{encoding_id(name)}-{norm}-{kind}")
    for name in ENCODINGS
    for norm, kv_heads, kind in (("pre", KV_HEADS, "gqa"), ("post", HEADS, "mha"))
]


# --- cached = uncached -----------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.transformer.cache.ModelCache",
    "course_lib.transformer.cache.LayerCache",
    against="the whole sequence at once",
)
@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
@pytest.mark.parametrize(("positions", "norm", "kv_heads"), CASES)
def test_kv_cache_of_a_model_equals_the_full_pass(ledger, positions, norm, kv_heads, made):
    model = randomized(made(sized(positions=positions, norm=norm, num_kv_heads=kv_heads)))
    source, target = source_and_target()
    read = (source,) if made is Transformer else ()
    whole = model(*read, target)
    for chunks in CHUNKS:
        if made is Transformer:
            ours = written(model, target, model.encode(source), chunks)
        else:
            ours = continued(model, target, chunks)
        ledger.compare(ours, whole, within=1e-10)


# --- projections and contents ----------------------------------------------------------------


def lengths_projected(model, run):
    """How many tokens went through each projection, call by call."""
    seen, hooks = {}, []
    for name, layer in model.named_modules():
        if name.endswith((".k_proj", ".v_proj")):
            seen[name] = []
            hook = lambda _, args, __, name=name: seen[name].append(args[0].shape[1])  # noqa: E731
            hooks.append(layer.register_forward_hook(hook))
    run()
    for hook in hooks:
        hook.remove()
    return seen


@pytest.mark.verifies(
    "course_lib.transformer.cache.CrossAttentionCache", against="counted projections of the memory"
)
def test_kv_cache_projects_the_memory_and_every_token_once(ledger):
    model, (source, target) = Transformer(sized()), source_and_target()
    seen = lengths_projected(model, lambda: written(model, target, model.encode(source), (3, 1, 3)))
    for place in range(DECODER):
        for part in ("k_proj", "v_proj"):
            assert seen[f"decoder.{place}.cross_attention.{part}"] == [SOURCE]
            assert seen[f"decoder.{place}.self_attention.{part}"] == [3, 1, 3]
    ledger.holds()
    alone = DecoderOnly(sized())
    seen = lengths_projected(alone, lambda: continued(alone, target, (4, 2, 1)))
    assert len(seen) == 2 * DECODER and all(lengths == [4, 2, 1] for lengths in seen.values())


def test_kv_cache_says_its_length_and_bytes():
    model, (source, target) = Transformer(sized()), source_and_target()
    cache, memory = model.new_cache(), model.encode(source)
    assert (cache.length, cache.nbytes, len(cache.blocks)) == (0, 0, DECODER)
    one = 2 * BATCH * KV_HEADS * D_HEAD * 4  # bytes of a key and a value of each sequence
    for start, end in ((0, 4), (4, 6)):
        model.decode(target[:, start:end], memory, cache=cache)
        assert cache.length == end and cache.nbytes == DECODER * one * (end + SOURCE)
    assert torch.equal(cache.padding_mask, (target[:, None, :6] != PAD))
    assert repr(cache) == f"ModelCache of 2 blocks, 6 tokens, {cache.nbytes} bytes"


# --- reordering ------------------------------------------------------------------------------


def test_a_state_reorders_the_memory_too_unless_the_sources_are_the_same():
    model, (source, _) = randomized(Transformer(sized())), source_and_target()
    rows = torch.tensor([1, 0])
    for options, moved in (({}, True), ({"same_sources": True}, False)):
        _, state = model.prefill(source, bos_id=1)
        before = state.memory.vectors
        state.reorder(rows, **options)
        assert torch.equal(state.memory.vectors, before[rows] if moved else before)
