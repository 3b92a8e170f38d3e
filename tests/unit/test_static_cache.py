"""The cache of fixed size against the whole sequence at once, as one graph, and where it refuses."""

import pytest
import torch

from course_lib.transformer import DecoderOnly, StaticCache, cache
from course_lib.transformer.decoding import DecodingSession
from course_lib.transformer.model import TransformerState
from course_lib.transformer.positions import ENCODINGS
from tests.helpers.decoding import PAD, TARGETS, model, words
from tests.helpers.encodings import SHIFT_INVARIANT
from tests.helpers.ids import encoding_id

BATCH, PROMPT, LENGTH, ROOM = 3, 4, 9, 13  # no two axes are equally long
CHUNKS = [(1,) * (LENGTH - PROMPT), (2, 3), (3, 1, 1)]


@pytest.fixture(params=["as on a CPU", "as on a GPU"])
def place(request, monkeypatch):
    """On a GPU the number of tokens stays a tensor, and attention is given all there is room for."""
    if request.param == "as on a GPU":
        monkeypatch.setattr(cache, "_number", lambda position: position)


def tokens(positions, *padded):
    """Token ids, with so many of each row padding in front where the encoding allows it."""
    made = words(TARGETS, LENGTH, *[0] * BATCH)
    if positions in SHIFT_INVARIANT:
        for row, count in zip(made, padded, strict=True):
            row[:count] = PAD
    return made


@torch.no_grad()
def prefilled(one, prompt, room=ROOM):
    """The state of a model that has read a prompt, with room for so many tokens."""
    state = TransformerState(one.new_cache())
    first = one(prompt, cache=state.cache)
    one.reserve(state, room - prompt.shape[1])
    return first, state


@torch.no_grad()
def continued(one, all_tokens, chunks, room=ROOM):
    first, state = prefilled(one, all_tokens[:, :PROMPT], room)
    pieces = all_tokens[:, PROMPT:].split(chunks, dim=1)
    return torch.cat([first, *(one(piece, cache=state.cache) for piece in pieces)], dim=1), state


@pytest.mark.verifies(
    "course_lib.transformer.cache.StaticCache", against="the whole sequence at once"
)
@pytest.mark.parametrize("heads", [3, 1], ids=["mha", "gqa"])
@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
def test_static_cache_equals_the_full_pass(ledger, place, positions, heads):
    one = model(DecoderOnly, positions=positions, num_kv_heads=heads)
    for row in ((0, 0, 0), (0, 2, 3)):
        made = tokens(positions, *row)
        for chunks in CHUNKS:
            ours, state = continued(one, made, chunks)
            real = made != PAD
            ledger.compare(ours[real], one(made)[real], within=1e-10)
            assert int(state.cache.length) == LENGTH
            assert state.cache.blocks[0].self_attention.key.shape == (BATCH, heads, ROOM, 4)


@pytest.mark.verifies(
    "course_lib.transformer.cache.StaticCache", against="the whole sequence at once"
)
@pytest.mark.parametrize(("dtype", "within"), [(torch.float32, 1e-4), (torch.bfloat16, 0.3)])
def test_static_cache_in_lower_precision(ledger, place, dtype, within):
    one, made = (
        model(DecoderOnly, positions="rotary", num_kv_heads=1).to(dtype),
        tokens("none", 0, 2, 3),
    )
    small = torch.nn.Module.apply(one, lambda part: None)
    ours, state = continued(small, made, CHUNKS[0])
    assert state.cache.blocks[0].self_attention.key.dtype == dtype
    real, scale = made != PAD, one(made).abs().max()
    ledger.compare((ours / scale)[real], (one(made) / scale)[real], within=within)


@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
def test_a_decode_step_with_a_static_cache_is_one_graph(without_annotations, positions):
    torch.compiler.reset()
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    one = model(DecoderOnly, positions=positions, num_kv_heads=1)
    step, made = (
        torch.compile(one.decode_step, fullgraph=True, backend=backend),
        tokens(positions, 0, 2, 3),
    )
    _, state = prefilled(one, made[:, :PROMPT])
    whole = one(made)
    with torch.no_grad():
        for n in range(PROMPT, LENGTH):
            torch.testing.assert_close(step(made[:, n], state), whole[:, n])
        assert len(graphs) == 1
        longer = torch.compile(one, fullgraph=True, backend="aot_eager")
        _, state = prefilled(one, made[:, :PROMPT])
        for n in (PROMPT, PROMPT + 2):
            torch.testing.assert_close(
                longer(made[:, n : n + 2], cache=state.cache), whole[:, n : n + 2]
            )


def test_static_cache_keeps_its_tensors_and_copies_no_keys(place):
    one, made = model(DecoderOnly), tokens("none", 0, 0, 0)
    _, state = prefilled(one, made[:, :PROMPT])
    layers = [block.self_attention for block in state.cache.blocks]
    before = [layer.key.data_ptr() for layer in layers]
    nbytes, mask = state.cache.nbytes, state.cache.padding_mask.data_ptr()
    with torch.no_grad():
        for n in range(PROMPT, LENGTH):
            one.decode_step(made[:, n], state)
    assert [layer.key.data_ptr() for layer in layers] == before
    assert (state.cache.nbytes, state.cache.padding_mask.data_ptr()) == (nbytes, mask)
    assert (
        nbytes == len(layers) * 2 * BATCH * 3 * ROOM * 4 * 8
    )  # keys and values, heads, room, d_head, float64
    assert repr(state.cache).startswith("StaticCache of 2 blocks")


def test_static_cache_reorders_as_the_rows_of_a_batch(place):
    one, made, rows = (
        model(DecoderOnly, positions="alibi"),
        tokens("alibi", 0, 2, 3),
        torch.tensor([2, 0, 2, 1]),
    )
    _, state = prefilled(one, made[:, :PROMPT])
    with torch.no_grad():
        one.decode_step(made[:, PROMPT], state)
        state.reorder(rows)
        ours = one.decode_step(made[rows, PROMPT + 1], state)
        torch.testing.assert_close(ours, one(made[rows, : PROMPT + 2])[:, -1])


def test_static_cache_forgets_what_is_cropped(place):
    one, made = model(DecoderOnly, positions="t5"), tokens("t5", 0, 2, 3)
    _, state = continued(one, made, (LENGTH - PROMPT,))
    state.cache.crop(PROMPT + 1)
    other = made.clone()
    other[:, PROMPT + 1 :] = other[:, PROMPT + 1 :].flip(1)
    with torch.no_grad():
        ours = one(other[:, PROMPT + 1 : PROMPT + 3], cache=state.cache)
        torch.testing.assert_close(ours, one(other[:, : PROMPT + 3])[:, -2:])


def test_a_step_that_is_interrupted_leaves_the_static_cache_as_it_was(place):
    one, made = model(DecoderOnly), tokens("none", 0, 0, 0)
    _, state = prefilled(one, made[:, :PROMPT])

    def interrupt(*_):
        raise KeyboardInterrupt

    hook = one.blocks[-1].register_forward_pre_hook(interrupt)
    with torch.no_grad():
        with pytest.raises(KeyboardInterrupt):
            one.decode_step(made[:, PROMPT], state)
        hook.remove()
        assert int(state.cache.length) == PROMPT
        ours = one.decode_step(made[:, PROMPT], state)
        torch.testing.assert_close(ours, one(made[:, : PROMPT + 1])[:, -1])


def test_decoding_makes_room_once_and_no_more_than_a_learned_table_has():
    learned = model(DecoderOnly, positions="learned", max_length=7)
    session = DecodingSession(learned, words(TARGETS, PROMPT, 0, 0))
    session.reserve(50)
    assert session.state.cache.padding_mask.shape[-1] == 7
    for _ in range(3):
        session.step(torch.tensor([3, 4]))
    with pytest.raises(ValueError, match="max_length=7"):
        session.step(torch.tensor([3, 4]))


def test_static_cache_refuses_what_does_not_fit(place):
    one, made = model(DecoderOnly), tokens("none", 0, 0, 0)
    with pytest.raises(ValueError, match="filled is empty; the model must read its prompt"):
        StaticCache(one.new_cache(), 5)
    with torch.no_grad():
        full = one.new_cache()
        one(made, cache=full)
        with pytest.raises(ValueError, match="max_length=8 is too short for the 9 tokens"):
            StaticCache(full, LENGTH - 1)
        _, state = prefilled(one, made[:, :PROMPT], room=PROMPT + 2)
        with pytest.raises(
            (ValueError, RuntimeError),
            match=r"room for 6 tokens and holds 4, so 3|than a StaticCache",
        ):
            one(made[:, PROMPT : PROMPT + 3], cache=state.cache)
        with pytest.raises(ValueError, match="holds 3 sequences, but the new tokens are of 2"):
            one(made[:2, :1], cache=state.cache)
    with pytest.raises(
        ValueError, match=r"is for inference; call the model under torch.no_grad\(\)"
    ):
        one.train()(made[:, PROMPT : PROMPT + 1], cache=state.cache)
