"""Exercise `on_frontier` of notebook 11."""

import torch

from course_lib.exercises.exercise import Case, Exercise, Mistake


def on_frontier(compute, loss):
    cheaper = compute[None, :] <= compute[:, None]  # (run, other run)
    at_least_as_good = loss[None, :] <= loss[:, None]
    better = (compute[None, :] < compute[:, None]) | (loss[None, :] < loss[:, None])
    return ~(cheaper & at_least_as_good & better).any(dim=1)


def _reference(compute, loss):
    pairs = list(zip(compute.tolist(), loss.tolist(), strict=True))
    return torch.tensor(
        [
            not any(c <= mine and v <= own and (c, v) != (mine, own) for c, v in pairs)
            for mine, own in pairs
        ]
    )


def _strict(compute, loss):
    return ~((compute[None, :] < compute[:, None]) & (loss[None, :] < loss[:, None])).any(dim=1)


def _given_order(compute, loss):
    return loss <= loss.cummin(dim=0).values


def _sorted_order(compute, loss):
    ordered = loss[compute.argsort(stable=True)]
    return ordered <= ordered.cummin(dim=0).values


def _one_per_budget(compute, loss):
    best = torch.tensor([loss[compute == c].min() for c in compute])
    return loss == best


def _worst(compute, loss):
    return _reference(-compute, -loss)


def _more_compute(compute, loss):
    return _reference(-compute, loss)


def _best(compute, loss):
    return loss == loss.min()


def _inverse(compute, loss):
    return ~_reference(compute, loss)


def _itself(compute, loss):
    return ~((compute[None, :] <= compute[:, None]) & (loss[None, :] <= loss[:, None])).any(dim=1)


EXERCISE = Exercise(
    name="on_frontier",
    notebook="11_scaling_laws",
    title="Which runs lie on the frontier",
    reference=_reference,
    solution=on_frontier,
    cases=(
        Case(compute=torch.tensor([4, 1, 2, 2]), loss=torch.tensor([3, 5, 5, 4])),
        Case(
            compute=torch.tensor([8, 2, 1, 4, 2, 16, 8]),
            loss=torch.tensor([2.5, 3.0, 4.0, 3.0, 3.5, 2.5, 2.0]),
        ),
    ),
    mistakes=(
        Mistake(
            "strict",
            _strict,
            "You keep a run if no other is better in both. A run with the same loss for less compute, or a lower loss "
            "for the same compute, also rules it out.",
        ),
        Mistake(
            "given_order",
            _given_order,
            "You compare each run with those before it in the list. The runs are in no particular order.",
        ),
        Mistake(
            "sorted_order",
            _sorted_order,
            "Your result is in the order of the sorted runs. Put it back into the order in which they were given.",
        ),
        Mistake(
            "one_per_budget",
            _one_per_budget,
            "You take the best run at each compute, even where a cheaper one is as good.",
        ),
        Mistake(
            "worst", _worst, "You mark the runs that no other is worse than: the upper envelope."
        ),
        Mistake(
            "more_compute",
            _more_compute,
            "Your comparison of the compute is reversed: a run is ruled out by one that costs less, or as much.",
        ),
        Mistake(
            "best",
            _best,
            "You mark the lowest loss of all. The frontier has a best run for every budget.",
        ),
        Mistake(
            "inverse", _inverse, "It is the other way round: you mark the runs that are ruled out."
        ),
        Mistake(
            "itself",
            _itself,
            "You compare each run with itself, too, so each one is ruled out.",
        ),
    ),
    hints=(
        "A run is ruled out if another costs no more and has no higher loss, and is better in at least one of the two.",
        "compute[None, :] <= compute[:, None] compares every run (row) with every other (column).",
        "~(cheaper_or_equal & as_good & (strictly cheaper | strictly better)).any(dim=1).",
    ),
    differentiable=False,
)
