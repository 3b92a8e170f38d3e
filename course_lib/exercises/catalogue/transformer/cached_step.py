"""Exercise `cached_step` of notebook 08."""

from functools import partial

import torch

from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake


def cached_step(x, kept, key_of, value_of):
    new = x[:, kept.shape[2] :]  # (batch, new, d_model): not projected yet
    fresh = torch.stack([key_of(new), value_of(new)])  # (2, batch, new, d_head)
    return torch.cat([kept, fresh], dim=2)  # behind those that are kept


class TooMuchWork(RuntimeError):
    """A token was projected that had been projected before."""


class ProjectedTwice(RuntimeError):
    """A new token was projected more than once."""


class _Projection:
    """Multiply by a matrix; raise for more tokens than there are new ones."""

    def __init__(self, name, W, new):
        self._name, self._W, self._new, self._seen = name, W, new, 0

    def __call__(self, x):
        if x.shape[-1] != len(self._W):
            raise ValueError(f"{self._name} takes vectors of {len(self._W)} numbers")
        if x.shape[-2] > self._new:
            raise TooMuchWork(f"{self._name}: {self._new} new, but {x.shape[-2]} came")
        self._seen += x.shape[-2]
        if self._seen > self._new:
            raise ProjectedTwice(f"{self._name}: {self._new} new, but {self._seen} came in all")
        return x @ self._W.to(x.dtype)

    def __deepcopy__(self, memo):
        return _Projection(self._name, self._W, self._new)  # has counted nothing

    def __eq__(self, other):
        return isinstance(other, _Projection) and other._W is self._W

    def __repr__(self):
        return f"a projection that counts, {self._new} new"


def _decoding_case(x, past, d_head, seed):
    """A case: all vectors so far, with the keys and values of the first `past` of them."""
    W_k, W_v = rounded_tensor(2, x.shape[-1], d_head, seed=seed)
    new = x.shape[1] - past
    return Case(
        x=x,
        kept=torch.stack([x[:, :past] @ W_k, x[:, :past] @ W_v]),
        key_of=_Projection("key_of", W_k, new),
        value_of=_Projection("value_of", W_v, new),
    )


def _cached_step(
    x,
    kept,
    key_of,
    value_of,
    *,
    new=lambda x, past: x[:, past:],
    fresh=lambda k, v, new: [k(new), v(new)],
    join=lambda kept, fresh: torch.cat([kept, fresh], dim=2),
):
    return join(kept, torch.stack(fresh(key_of, value_of, new(x, kept.shape[2]))))


EXERCISE = Exercise(
    name="cached_step",
    notebook="08_transformer",
    title="One step with a KV cache",
    reference=_cached_step,
    solution=cached_step,
    cases=(
        _decoding_case(rounded_tensor(1, 2, 2, seed=9), past=1, d_head=2, seed=10),
        # nothing is kept yet
        _decoding_case(random_tensor(2, 3, 4, seed=11), past=0, d_head=3, seed=12),
        _decoding_case(random_tensor(2, 5, 4, seed=13), past=2, d_head=3, seed=14),
        _decoding_case(random_tensor(3, 6, 4, seed=15), past=5, d_head=3, seed=16),
    ),
    mistakes=(
        Mistake(
            "all_again",
            partial(_cached_step, new=lambda x, past: x, join=lambda kept, fresh: fresh),
            "You project every token again. The result is right, but no work is saved. Project x[:, kept.shape[2]:] "
            "alone, and take the rest from kept.",
        ),
        Mistake(
            "kept_again",
            lambda x, kept, key_of, value_of: torch.stack(
                [
                    key_of(torch.cat([kept[0], x[:, kept.shape[2] :]], dim=1)),
                    value_of(torch.cat([kept[1], x[:, kept.shape[2] :]], dim=1)),
                ]
            ),
            "You project what is kept once more. It is keys and values already: project the new tokens, then join.",
        ),
        Mistake(
            "twice",
            partial(_cached_step, fresh=lambda k, v, new: [k(new), v(new), k(new)][:2]),
            "You project the new tokens twice. Keep the result of the first time.",
        ),
        Mistake(
            "new_in_front",
            partial(_cached_step, join=lambda kept, fresh: torch.cat([fresh, kept], dim=2)),
            "Your new tokens come first. They are the last tokens of the sequence; a causal mask would mask the wrong "
            "ones.",
        ),
        Mistake(
            "replaced",
            partial(_cached_step, join=lambda kept, fresh: fresh),
            "The new keys and values replace the old ones, and what was kept is lost. Join them: "
            "torch.cat([kept, fresh], dim=2).",
        ),
        Mistake(
            "newest_only",
            partial(_cached_step, new=lambda x, past: x[:, -1:]),
            "You project the last token alone. Several may be new: all behind the first kept.shape[2].",
        ),
        Mistake(
            "shifted",
            partial(
                _cached_step,
                join=lambda kept, fresh: torch.cat([kept, fresh], dim=2)[:, :, -kept.shape[2] :],
            ),
            "You drop the oldest tokens to make room. The cache grows with the sequence: nothing is dropped.",
        ),
        Mistake(
            "overwritten",
            partial(
                _cached_step,
                join=lambda kept, fresh: torch.cat([kept[:, :, : -fresh.shape[2]], fresh], dim=2),
            ),
            "Your new tokens overwrite the last ones. They come behind them.",
        ),
        Mistake(
            "first_tokens",
            partial(_cached_step, new=lambda x, past: x[:, : x.shape[1] - past]),
            "You project the first tokens of x. Those are kept; the new ones are the last.",
        ),
        Mistake(
            "nothing_new",
            lambda x, kept, key_of, value_of: kept * 1,
            "You return what was kept, and nothing new.",
        ),
        Mistake(
            "exchanged",
            partial(_cached_step, fresh=lambda k, v, new: [v(new), k(new)]),
            "Keys and values are exchanged for the new tokens. First the key, then the value, as in kept.",
        ),
        Mistake(
            "values_are_keys",
            partial(_cached_step, fresh=lambda k, v, new: [(key := k(new)), key]),
            "Your new values are keys: value_of is never used.",
        ),
        Mistake(
            "values_of_keys",
            partial(_cached_step, fresh=lambda k, v, new: [(key := k(new)), v(key)]),
            "Your new values are made of keys. Both are made of x.",
        ),
        Mistake(
            "inputs_kept",
            partial(_cached_step, fresh=lambda k, v, new: [new, new]),
            "You keep the vectors themselves, not projected. Then all of them must be projected at every step.",
        ),
        Mistake(
            "along_the_batch",
            partial(_cached_step, join=lambda kept, fresh: torch.cat([kept, fresh], dim=1)),
            "You join along the batch. kept is (2, batch, past, d_head): the tokens are its third axis, dim=2.",
        ),
        Mistake(
            "along_the_vectors",
            partial(_cached_step, join=lambda kept, fresh: torch.cat([kept, fresh], dim=-1)),
            "You join along the vectors. kept is (2, batch, past, d_head): the tokens are its third axis, dim=2.",
        ),
    ),
    hints=(
        "kept.shape[2] says how many tokens are done. Which are not?",
        "Project x[:, kept.shape[2]:], once with each projection, and stack the two: (2, batch, new, d_head).",
        "torch.cat([kept, fresh], dim=2).",
    ),
)
