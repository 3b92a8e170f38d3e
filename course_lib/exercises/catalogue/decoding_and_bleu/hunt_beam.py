"""Bug hunt `hunt_beam` of notebook 09."""

from functools import partial
from itertools import product

import torch

from course_lib.exercises.catalogue._shared import still_wrong
from course_lib.exercises.exercise import Case, Exercise, Mistake


def one_step(sums, log_p, finished, length, eos_id):
    size, vocabulary = log_p.shape
    best, place = (sums[:, None] + log_p).flatten().topk(2 * size)
    ended = place % vocabulary == eos_id
    running = best[~ended][:size]  # what has ended does not go on
    scores = best[ended] / length  # a mean, to be compared with other lengths
    finished = torch.cat([finished, scores]).topk(size).values
    return torch.stack([running, finished])


def _given(sums, log_p, finished, length, eos_id):
    size, vocabulary = log_p.shape
    best, place = (sums[:, None] + log_p).flatten().topk(2 * size)
    ended = place % vocabulary == eos_id
    running = best[:size]
    scores = best[ended]
    finished = torch.cat([finished, scores]).topk(size).values
    return torch.stack([running, finished])


#: Symptom by what is done with the running and with those that end; "" is right.
_RUNNING = {
    "": "",
    "extended": "a sequence that has ended stays in the beam and is continued behind its end",
    "holes": "where one ends, its place stays empty, and the beam gets narrower; twice as many candidates are there "
    "to fill it",
    "means": "the running ones are divided by the length; the next step adds to them, so they must stay sums",
}
_FINISHED = {
    "": "",
    "sums": "a sum over all tokens is compared with means of shorter sequences, so the short win",
    "all divided": "those that were finished before are divided once more",
    "multiplied": "the sum is multiplied by the length, which punishes the long twice",
    "one less": "the sum is divided by length - 1, but the end is a token too",
    "all": "sequences that have not ended are put aside as finished",
}


def _one_step_with_bugs(sums, log_p, finished, length, eos_id, *, running, done):
    size, vocabulary = log_p.shape
    best, place = (sums[:, None] + log_p).flatten().topk(2 * size)
    ended = place % vocabulary == eos_id
    on = {
        "": lambda: best[~ended][:size],
        "extended": lambda: best[:size],
        "holes": lambda: best.masked_fill(ended, -torch.inf)[:size],
        "means": lambda: best[~ended][:size] / length,
    }[running]
    scores = {
        "": lambda: torch.cat([finished, best[ended] / length]),
        "sums": lambda: torch.cat([finished, best[ended]]),
        "all divided": lambda: torch.cat([finished, best[ended]]) / length,
        "multiplied": lambda: torch.cat([finished, best[ended] * length]),
        "one less": lambda: torch.cat([finished, best[ended] / (length - 1)]),
        "all": lambda: torch.cat([finished, best / length]),
    }[done]
    return torch.stack([on(), scores().topk(size).values])


def _probabilities(*rows):
    return torch.tensor(rows).log().round(decimals=2)


EXERCISE = Exercise(
    name="hunt_beam",
    notebook="09_decoding_and_bleu",
    title="Bug hunt: a beam that goes on after the end",
    reference=partial(_one_step_with_bugs, running="", done=""),
    solution=one_step,
    cases=(
        Case(
            sums=torch.tensor([-0.7, -0.9]),
            log_p=_probabilities([0.1, 0.15, 0.75], [0.55, 0.4, 0.05]),
            finished=torch.tensor([-0.5, -0.8]),
            length=4,
            eos_id=2,
        ),
        Case(  # two end, and only two ended before
            sums=torch.tensor([-2.0, -2.3, -2.9]),
            log_p=_probabilities(
                [0.05, 0.6, 0.2, 0.15], [0.1, 0.7, 0.15, 0.05], [0.3, 0.02, 0.5, 0.18]
            ),
            finished=torch.tensor([-0.45, -0.7, -torch.inf]),
            length=5,
            eos_id=1,
        ),
        Case(  # two end, and are worse than all before
            sums=torch.tensor([-1.0, -1.2, -1.4]),
            log_p=_probabilities(
                [0.5, 0.1, 0.25, 0.15], [0.4, 0.3, 0.18, 0.12], [0.15, 0.45, 0.28, 0.12]
            ),
            finished=torch.tensor([-0.2, -0.3, -0.35]),
            length=3,
            eos_id=0,
        ),
    ),
    mistakes=(
        *(
            Mistake(
                "left: " + ", ".join(one for one in (running, done) if one),
                partial(_one_step_with_bugs, running=running, done=done),
                still_wrong(_RUNNING[running], _FINISHED[done]),
            )
            for running, done in product(_RUNNING, _FINISHED)
            if (running, done) not in (("", ""), ("extended", "sums"))
        ),
    ),
    hints=(
        "There are two bugs, one in each row of the result. What happens to a candidate whose last token is the end?",
        "It is put aside, and it stays in running as well. And finished holds means. What joins them?",
        "running = best[~ended][:size] and scores = best[ended] / length.",
    ),
    given=_given,
    given_message=still_wrong(_RUNNING["extended"], _FINISHED["sums"]),
    differentiable=False,
)
