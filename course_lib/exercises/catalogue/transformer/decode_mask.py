"""Exercise `decode_mask` of notebook 08."""

import torch

from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import causal_mask, combine_masks, padding_mask_from_tokens


def decode_mask(tokens, new, pad_id):
    length = tokens.shape[1]
    positions = torch.arange(length)
    queries = positions[length - new :]  # the new tokens are the last ones
    causal = positions <= queries[:, None]  # (new, length)
    real = tokens != pad_id  # (batch, length)
    return causal & real[:, None, :]  # (batch, new, length)


def _mask(tokens, new, pad_id, *, diagonal=0, padding="keys", join=torch.logical_and, rows="last"):
    length = tokens.shape[1]
    square = torch.ones(length, length, dtype=torch.bool).tril(diagonal)
    causal = square[length - new :] if rows == "last" else square[:new]
    real = tokens != pad_id
    if padding == "keys":
        return join(causal, real[:, None, :])
    if padding == "queries":
        return causal & real[:, length - new :, None]
    if padding == "zero":
        return causal & (tokens != 0)[:, None, :]
    if padding == "inverted":
        return causal & ~real[:, None, :]
    return causal.expand(len(tokens), new, length)


def _with(**options):
    return lambda tokens, new, pad_id: _mask(tokens, new, pad_id, **options)


def _by_offset(tokens, new, pad_id, offset, *, triangle=torch.tril):
    length = tokens.shape[1]
    causal = triangle(torch.ones(new, length, dtype=torch.bool), offset(length, new))
    return causal & (tokens != pad_id)[:, None, :]


EXERCISE = Exercise(
    name="decode_mask",
    notebook="08_transformer",
    title="The mask of a decoder, with and without a cache",
    reference=lambda tokens, new, pad_id: combine_masks(
        causal_mask(new, tokens.shape[1]), padding_mask_from_tokens(tokens, pad_id)
    ),
    solution=decode_mask,
    cases=(
        Case(tokens=torch.tensor([[1, 5, 7]]), new=2, pad_id=0),
        Case(  # no cache: all tokens are new
            tokens=torch.tensor([[1, 5, 2, 0], [1, 6, 8, 2]]), new=4, pad_id=0
        ),
        Case(  # padding on the left, and another padding token
            tokens=torch.tensor([[3, 3, 1, 5], [1, 0, 7, 4], [3, 1, 4, 0]]), new=2, pad_id=3
        ),
        Case(
            tokens=torch.tensor([[1, 5, 7, 4, 9], [1, 6, 8, 2, 0], [0, 1, 6, 8, 2]]),
            new=1,
            pad_id=0,
        ),
    ),
    mistakes=(
        Mistake(
            "first_rows",
            _with(rows="first"),
            "Your mask has the rows of the first tokens, as if nothing were cached. The new tokens are the last ones, "
            "and they may attend to everything cached.",
        ),
        Mistake(
            "everything",
            lambda tokens, new, pad_id: (tokens != pad_id)[:, None, :].expand(-1, new, -1),
            "Nothing is causal: with several new tokens, each also attends to the later ones.",
        ),
        Mistake(
            "one_ahead",
            _with(diagonal=1),
            "Off by one: each new token may attend to the token after it.",
        ),
        Mistake(
            "without_itself",
            _with(diagonal=-1),
            "Off by one: a token may attend to its own position too.",
        ),
        Mistake(
            "causal_only",
            _with(padding="none"),
            "Padding is allowed. With padding on the right that is harmless for a decoder; with padding on the left "
            "every real token attends to it.",
        ),
        Mistake(
            "padding_of_queries",
            _with(padding="queries"),
            "You mask the queries at padding. Mask the keys: real[:, None, :].",
        ),
        Mistake(
            "zero_is_padding",
            _with(padding="zero"),
            "You take token 0 for padding. pad_id says which token it is.",
        ),
        Mistake(
            "padding_inverted",
            _with(padding="inverted"),
            "Only padding is allowed. tokens != pad_id is True at real tokens, and True means 'may attend'.",
        ),
        Mistake(
            "either",
            _with(join=torch.logical_or),
            "You allow what either mask allows. A key must be allowed by both: use &.",
        ),
        Mistake(
            "inverted",
            lambda *a: ~_mask(*a),
            "Right, with True and False swapped: this is the convention of nn.Transformer. In this course True means "
            "'may attend'.",
        ),
        Mistake(
            "causal_inverted",
            lambda *a: ~_mask(*a, padding="none") & _mask(*a, diagonal=a[0].shape[1]),
            "Your mask is the upper triangle without the diagonal: torch.triu(…, 1) marks what to mask, as nn.Transformer "
            "expects it. Here True means 'may attend'.",
        ),
        Mistake(
            "padding_of_both",
            lambda tokens, new, pad_id: (
                _mask(tokens, new, pad_id) & _mask(tokens, new, pad_id, padding="queries")
            ),
            "The keys are right. But you mask the queries at padding as well, so their rows are empty, which may give NaN. "
            "Their outputs are not used: mask only the keys.",
        ),
        Mistake(
            "wrong_sign",
            lambda *a: _by_offset(*a, lambda length, new: new - length),
            "Your offset has the wrong sign: the queries come after the cached keys. .tril(length - new)",
        ),
        Mistake(
            "offset_by_new",
            lambda *a: _by_offset(*a, lambda length, new: new),
            "Your offset is the number of new tokens. It is the number of cached ones: length - new.",
        ),
        Mistake(
            "upper",
            lambda *a: _by_offset(*a, lambda length, new: length - new, triangle=torch.triu),
            "Your mask is the upper triangle: each new token attends to itself and to later ones.",
        ),
        Mistake(
            "padding_on_the_right",
            lambda tokens, new, pad_id: (
                _mask(tokens, new, pad_id, padding="none")
                & (torch.arange(tokens.shape[1]) < (tokens != pad_id).sum(1, keepdim=True))[
                    :, None, :
                ]
            ),
            "You count the real tokens and allow so many keys from the left. That is right only with padding on the right; it "
            "may stand on either side: tokens != pad_id.",
        ),
        Mistake(
            "all_rows",
            lambda tokens, new, pad_id: _mask(tokens, tokens.shape[1], pad_id),
            "Your mask has a row for every token. Only the new ones, the last `new`, are queries.",
        ),
        Mistake(
            "axis_of_heads",
            lambda *a: _mask(*a)[:, None],
            "Your mask is right, with an additional axis for the heads. Here it is (batch, new, length).",
        ),
        Mistake(
            "new_only",
            lambda tokens, new, pad_id: (
                _mask(tokens, new, pad_id)
                & (torch.arange(tokens.shape[1]) >= tokens.shape[1] - new)
            ),
            "Your new tokens attend only to each other. They may attend to everything cached too.",
        ),
        Mistake(
            "cached_only",
            lambda tokens, new, pad_id: (
                (tokens != pad_id) & (torch.arange(tokens.shape[1]) < tokens.shape[1] - new)
            )[:, None, :].expand(-1, new, -1),
            "Your new tokens attend only to the cached ones. Each attends to itself and to the new ones before it too.",
        ),
        Mistake(
            "all_allowed",
            lambda tokens, new, pad_id: torch.ones(
                len(tokens), new, tokens.shape[1], dtype=torch.bool
            ),
            "Everything is allowed. A key is allowed if it is not after its query and is not padding.",
        ),
    ),
    hints=(
        "The new tokens are the last ones. At which positions are they?",
        "queries = torch.arange(length)[length - new:]. A key is allowed if its position is not after the query's.",
        "(positions <= queries[:, None]) & (tokens != pad_id)[:, None, :].",
    ),
    differentiable=False,
)
