"""Which runs lie on the frontier."""

import torch


def on_frontier(compute, loss):
    cheaper = compute[None, :] <= compute[:, None]  # (run, other run)
    at_least_as_good = loss[None, :] <= loss[:, None]
    better = (compute[None, :] < compute[:, None]) | (loss[None, :] < loss[:, None])
    return ~(cheaper & at_least_as_good & better).any(dim=1)


def reference(compute, loss):
    pairs = list(zip(compute.tolist(), loss.tolist(), strict=True))
    return torch.tensor(
        [
            not any(c <= mine and v <= own and (c, v) != (mine, own) for c, v in pairs)
            for mine, own in pairs
        ]
    )


FRONTIER = "~(cheaper & at_least_as_good & better).any(dim=1)"
ORDER = "order := compute.argsort(stable=True)"
NO_WORSE = f"loss[{ORDER}] <= loss[order].cummin(dim=0).values"
BETTER = (
    f"loss[{ORDER}] < torch.cat([torch.tensor([torch.inf]), loss[order].cummin(dim=0).values[:-1]])"
)
AGAIN = "[order.argsort()]"  # back into the order of the runs
EARLIER = "torch.ones(len(loss), len(loss), dtype=torch.bool).tril(-1)"
MISTAKES = f"""
compute[:, None]) | ( -> compute[:, None]) & (
    You keep a run if no other is better in both. A run with the same loss for less compute, or a lower loss for the
    same compute, also rules it out.
compute[:, None]) | (loss[None, :] < loss[:, None]) -> compute[:, None])
    A run rules out another one only if it costs less here. One with a lower loss for the same compute also does.
(compute[None, :] < compute[:, None]) | ->
    A run rules out another one only if its loss is lower here. One with the same loss for less compute also does.
{FRONTIER} -> loss <= loss.cummin(dim=0).values
    You compare each run with those before it in the list. The runs are in no particular order.
{FRONTIER} -> {NO_WORSE}
{FRONTIER} -> {BETTER}
    Your result is in the order of the sorted runs. Put it back into the order in which they were given.
{FRONTIER} -> ({NO_WORSE}){AGAIN}
    In the order of compute you keep a run that is no worse than all before it. One with the same compute and a lower
    loss may come after it, and one that has the same loss for less compute rules it out.
{FRONTIER} -> ({BETTER}){AGAIN}
    In the order of compute you keep a run that is better than all before it. One with the same compute and a lower
    loss may come after it, and of two equal runs neither rules out the other.
{FRONTIER} -> loss == torch.stack([loss[compute == c].min() for c in compute])
    You take the best run at each compute, even where a cheaper one is as good or better.
.any(dim=1) -> .any(dim=0)
    You mark the runs that no other is worse than: the upper envelope.
compute[None, :] <= -> compute[None, :] >=
+ compute[None, :] < compute -> compute[None, :] > compute
    Your comparison of the compute is reversed: a run is ruled out by one that costs less, or as much.
loss[None, :] <= -> loss[None, :] >=
+ loss[None, :] < loss -> loss[None, :] > loss
    Your comparison of the losses is reversed: a run is ruled out by one whose loss is lower, or as low.
{FRONTIER} -> loss == loss.min()
    You mark the lowest loss of all. The frontier has a best run for every budget.
return ~ -> return
    It is the other way round: you mark the runs that are ruled out.
at_least_as_good & better -> at_least_as_good
    You compare each run with itself, too, so each one is ruled out.
at_least_as_good & better -> at_least_as_good & ~torch.eye(len(loss), dtype=torch.bool)
    Of two equal runs each rules out the other here. A run rules out another one only if it is better in at least one
    of the two.
at_least_as_good & better -> at_least_as_good & (better | {EARLIER})
    Of two equal runs you keep only the first. A run rules out another one only if it is better in at least one of the
    two.
at_least_as_good & better -> at_least_as_good & {EARLIER}
    Of two equal runs you keep only the first, and runs are compared only with those before them in the list.
(cheaper & at_least_as_good & better) -> (cheaper & better)
    A run that costs less rules out another one whatever its loss here. It must have no higher loss as well.
(cheaper & at_least_as_good & better) -> (at_least_as_good & better)
    A run with a lower loss rules out another one whatever it costs here. It must need no more compute as well.
(cheaper & at_least_as_good & better) -> better
    A run is ruled out here by any that is better in one of the two. It must be no worse in the other.
.any(dim=1) -> .all(dim=1)
    A run must be ruled out by all the others here. One is enough: any.
.any(dim=1) -> .any()
    You ask whether any run is ruled out at all. Ask for each run: any(dim=1).
return {FRONTIER} -> return ({FRONTIER}).nonzero()[:, 0]
    These are the positions of the runs on the frontier. Return a boolean for each run.
"""

CASES = (
    dict(compute=torch.tensor([2, 1]), loss=torch.tensor([4, 3])),
    dict(compute=torch.tensor([4, 1, 2, 2]), loss=torch.tensor([3, 5, 5, 4])),
    dict(  # two equal runs
        compute=torch.tensor([8, 2, 1, 4, 2, 16, 8, 8]),
        loss=torch.tensor([2.5, 3.0, 3.2, 3.0, 3.1, 2.0, 2.0, 2.0]),
    ),
)
HINTS = """
A run is ruled out if another costs no more and has no higher loss, and is better in at least one of the two.
compute[None, :] <= compute[:, None] compares every run (row) with every other (column).
~(cheaper_or_equal & as_good & (strictly cheaper | strictly better)).any(dim=1).
"""
DIFFERENTIABLE = False
