"""One step with a KV cache."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor


def cached_step(x, kept, key_of, value_of):
    new = x[:, kept.shape[2] :]  # (batch, new, d_model): not projected yet
    fresh = torch.stack([key_of(new), value_of(new)])  # (2, batch, new, d_head)
    return torch.cat([kept, fresh], dim=2)  # behind those that are kept


class TooMuchWork(RuntimeError):
    """A token was projected that had been projected before."""


class ProjectedTwice(RuntimeError):
    """A new token was projected more than once."""


def _new_tokens(number):
    return "1 token is" if number == 1 else f"{number} tokens are"


class _Projection:
    """Multiply by a matrix; raise for more tokens than there are new ones."""

    def __init__(self, name, W, new, batch):
        self._name, self._W, self._new, self._batch, self._seen = name, W, new, batch, 0

    def __call__(self, x):
        if x.shape[-1] != len(self._W):
            raise ValueError(f"{self._name} takes vectors of {len(self._W)} numbers")
        tokens = x.numel() // x.shape[-1]  # of all sequences, in whatever form they come
        most = self._new * self._batch
        if tokens > most:
            raise TooMuchWork(f"{_new_tokens(most)} new, but {tokens} were projected")
        self._seen += tokens
        if self._seen > most:
            raise ProjectedTwice(f"{_new_tokens(most)} new, but {self._seen} were projected in all")
        return x @ self._W.to(x.dtype)

    def __deepcopy__(self, memo):  # has counted nothing
        return _Projection(self._name, self._W, self._new, self._batch)

    def __eq__(self, other):
        return isinstance(other, _Projection) and other._W is self._W

    def __repr__(self):
        return f"a projection that counts, {self._new} new"


def _decoding_case(x, past, d_head, seed):
    """A case: all vectors so far, with the keys and values of the first `past` of them."""
    W_k, W_v = rounded_tensor(2, x.shape[-1], d_head, seed=seed)
    new = x.shape[1] - past
    return dict(
        x=x,
        kept=torch.stack([x[:, :past] @ W_k, x[:, :past] @ W_v]),
        key_of=_Projection("key_of", W_k, new, len(x)),
        value_of=_Projection("value_of", W_v, new, len(x)),
    )


BOTH = "key_of(new), value_of(new)"
JOIN = "torch.cat([kept, fresh], dim=2)"
MISTAKES = f"""
x[:, kept.shape[2] :] -> x
    You project tokens whose keys and values are kept already, so no work is saved. Project x[:, kept.shape[2]:]
    alone, and take the rest from kept.
{BOTH} -> key_of(torch.cat([kept[0], new], dim=1)), value_of(torch.cat([kept[1], new], dim=1))
+ {JOIN} -> fresh
{JOIN} -> torch.cat([torch.stack([key_of(kept[0]), value_of(kept[1])]), fresh], dim=2)
    You project what is kept once more. It is keys and values already: project the new tokens, then join.
{BOTH} -> key_of(new), key_of(new)
    The new tokens pass twice through the same projection. Project them once with each, the keys with key_of and the
    values with value_of, and keep the results.
[kept, fresh] -> [fresh, kept]
    Your new tokens come first. They are the last tokens of the sequence; a causal mask would mask the wrong ones.
{JOIN} -> fresh
    The new keys and values replace the old ones, and what was kept is lost. Join them: torch.cat([kept, fresh],
    dim=2).
x[:, kept.shape[2] :] -> x[:, -1:]
    You project the last token alone. Several may be new: all behind the first kept.shape[2].
x[:, kept.shape[2] :] -> x[:, -1:] if kept.shape[2] else x
    Once something is kept, you project the last token alone. Several may be new: all behind the first kept.shape[2].
{JOIN} -> {JOIN}[:, :, -kept.shape[2] :]
{JOIN} -> {JOIN}[:, :, 1:]
    You drop the oldest tokens to make room. The cache grows with the sequence: nothing is dropped.
[kept, fresh] -> [kept[:, :, : -fresh.shape[2]], fresh]
    Your new tokens overwrite the last ones. They come behind them.
x[:, kept.shape[2] :] -> x[:, : x.shape[1] - kept.shape[2]]
    You project the first tokens of x. Those are kept; the new ones are the last.
x[:, kept.shape[2] :] -> x[:, : kept.shape[2]]
    You project the tokens that are kept already, x[:, :past], and append them once more. The new ones come after
    them: x[:, past:].
kept.shape[2] : -> kept.shape[2] + 1 :
    Off by one: the first new token is missing. The first `past` tokens are kept, so the new ones begin at index past.
kept.shape[2] : -> kept.shape[2] - 1 :
    Off by one: you project the last kept token again. The first `past` tokens are kept, so the new ones begin at
    index past.
kept.shape[2] : -> kept.shape[1] :
    You take the size of the batch for the number of kept tokens. kept is (2, batch, past, d_head): kept.shape[2].
kept.shape[2] : -> kept.shape[0] :
    len(kept) is 2: keys and values. The number of kept tokens is kept.shape[2].
kept.shape[2] : -> kept.shape[3] :
    You take d_head for the number of kept tokens. kept is (2, batch, past, d_head): kept.shape[2].
{JOIN} -> kept * 1
    You return what was kept, and nothing new.
{BOTH} -> value_of(new), key_of(new)
    Keys and values are exchanged for the new tokens. First the key, then the value, as in kept.
{JOIN} -> {JOIN}.flip(0)
    You return the values first and then the keys. The keys come first, as in kept.
[{BOTH}] -> [key_of(new)] * 2
    Your new values are keys: value_of is never used.
[{BOTH}] -> [value_of(new)] * 2
    Your new keys are values: key_of is never used.
fresh = torch.stack([{BOTH}]) -> keys = key_of(new); fresh = torch.stack([keys, value_of(keys)])
    Your new values are made of keys. Both are made of x.
{BOTH} -> new, new
    You keep the vectors themselves, not projected. Then all of them must be projected at every step.
torch.stack([{BOTH}]) -> torch.cat([{BOTH}])
    torch.cat joins keys and values along the batch. kept has an axis for them: torch.stack gives fresh the same.
torch.stack([{BOTH}]) -> torch.stack([{BOTH}], dim=1)
    You stack keys and values along the second axis. In kept they are on the first: (2, batch, …).
{JOIN} -> torch.cat([kept, fresh], dim=0)
    You join along the axis of keys and values. kept is (2, batch, past, d_head): the tokens are its third axis,
    dim=2.
{JOIN} -> torch.cat([kept, fresh], dim=1)
    You join along the batch. kept is (2, batch, past, d_head): the tokens are its third axis, dim=2.
{JOIN} -> torch.cat([kept, fresh], dim=-1)
    You join along the vectors. kept is (2, batch, past, d_head): the tokens are its third axis, dim=2.
{JOIN} -> torch.cat([kept[0], fresh[0]], dim=1)
    You return the keys alone. Keys and values are stacked: (2, batch, length, d_head).
"""

CASES = (
    _decoding_case(rounded_tensor(1, 2, 2, seed=9), past=1, d_head=2, seed=10),
    # nothing is kept yet
    _decoding_case(random_tensor(2, 3, 4, seed=11), past=0, d_head=3, seed=12),
    _decoding_case(random_tensor(2, 5, 4, seed=13), past=2, d_head=3, seed=14),
    _decoding_case(random_tensor(3, 6, 4, seed=15), past=5, d_head=3, seed=16),
)
HINTS = """
kept.shape[2] says how many tokens are done. Which are not?
Project x[:, kept.shape[2]:], once with each projection, and stack the two: (2, batch, new, d_head).
torch.cat([kept, fresh], dim=2).
"""
