"""The training loop."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.inputs import require_whole
from course_lib.training.checkpoint import Checkpoint
from course_lib.training.evaluation import Evaluation
from course_lib.training.history import History, Progress, Watched
from course_lib.training.step import Stepper


def fit(
    model: nn.Module,
    batches: Iterable[Any],
    loss: Callable[[nn.Module, Any], Tensor],
    *,
    steps: int,
    rate: float | Callable[[int], float] = 1e-3,
    clip: float = 1.0,
    accumulate: int = 1,
    weight: Callable[[Any], float] | None = None,
    precision: str = "float32",
    evaluate: Callable[[nn.Module], float] | None = None,
    every: int = 100,
    goal: float | None = None,
    patience: int | None = None,
    watch: Callable[[Progress], None] | None = None,
    seed: int = 0,
    save_to: str | Path | None = None,
    save_every: int = 100,
    resume: bool = False,
) -> History:
    """Train a model with Adam, and leave it in evaluation mode.

    Interrupting it (the stop button, Ctrl-C) ends training early and keeps what was learned.

    With `save_to` and `resume`, training that was killed goes on where it was last saved, and comes to
    the same losses and weights, bit for bit, as if it had not been killed. For that, the functions given
    must keep nothing between calls and draw random numbers from PyTorch's global generators only, and
    `batches` must give the same sequence when iterated anew, as `PairBatches` does: those used are
    skipped. A generator that was already drawn from cannot do that.

    Args:
        model: whose parameters are trained.
        batches: `accumulate` per step; endless, or enough of them.
        loss: from the model and a batch to one number that carries gradients.
        steps: how many, at most.
        rate: the learning rate, or a function from the step (1, 2, …) to it.
        clip: gradients whose norm, over all parameters, is above it are shortened to it.
        accumulate: each step goes down the mean loss of so many batches.
        weight: from a batch to how much it counts in that mean, e.g. the number of its target tokens,
            for a loss that is a mean over them; equal weights where left out.
        precision: "float32": the model computes in its own dtype; "bfloat16": under `torch.autocast`,
            while weights and optimizer stay as they are.
        evaluate: from the model, in evaluation mode and without gradients, to a held-out score;
            higher is better.
        every: evaluate every so many steps, and after the last one.
        goal: stop when the score reaches it.
        patience: stop after so many evaluations in a row that are no better than the best; the
            weights of the best one are put back.
        watch: called after each step, e.g. with a `LossPicture`.
        seed: of whatever the model and the loss draw while training, such as dropout.
        save_to: a file for everything that is needed to go on.
        save_every: save every so many steps, and after the last one.
        resume: go on from `save_to` if that file is there. One that is finished is returned at once, or
            goes on if `steps` is larger now; the score of its old end stays in the history.

    Raises:
        ValueError: for numbers out of range, a goal or patience without `evaluate`, too few batches,
            and a file to resume from that is damaged, has more steps, or was written with other settings.
        FloatingPointError: when the loss or a gradient is no longer finite; the weights are those before
            that step.
    """
    _require_fit(weight, evaluate, watch, save_to, resume)
    require_whole(steps=steps)
    stepper = Stepper(
        model,
        loss,
        rate=rate,
        clip=clip,
        accumulate=accumulate,
        weight=weight,
        precision=precision,
    )
    evaluation = Evaluation(evaluate, every=every, goal=goal, patience=patience)
    history = History()
    watched = Watched(history, steps, watch)
    file = None
    if save_to is not None:
        settings = {
            "rate": rate, "clip": clip, "accumulate": accumulate, "weight": weight, "seed": seed,
            "precision": precision, "evaluate": evaluate, "every": every, "goal": goal, "patience": patience,
        }  # fmt: skip
        file = Checkpoint(
            save_to,
            every=save_every,
            settings=settings,
            stepper=stepper,
            evaluation=evaluation,
            history=history,
        )
    device = stepper.device
    source, stopped = iter(batches), None
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        try:
            if resume and file.path.exists():
                stopped = file.load(source, steps)
                watched.start()
            step = len(history.losses)
            while stopped is None:
                step += 1
                history.losses.append(stepper.take(stepper.batches(source, step), step))
                score = evaluation.score(model, step, last=step == steps)
                if score is not None:
                    history.scores[step] = score
                stopped = evaluation.stops(score) or ("steps" if step == steps else None)
                watched.tell(score, stopped)
                if file is not None and (stopped or step % file.every == 0):
                    file.save(stopped)
        except KeyboardInterrupt:
            stopped = "interrupted"
        finally:
            ended = stopped in ("steps", "patience", "goal")
            history.stopped = stopped = stopped or "failed"
            if evaluation.weights is not None:
                model.load_state_dict(evaluation.weights)
            model.eval()
            if not ended and history.losses:
                watched.tell(None, stopped)
    return history


def _require_fit(weight, evaluate, watch, save_to, resume) -> None:
    for name, function in (("weight", weight), ("evaluate", evaluate), ("watch", watch)):
        if function is not None and (not callable(function) or isinstance(function, type)):
            raise ValueError(
                f"{name}={function!r} must be a function, or an object that can be called"
            )
    if not isinstance(resume, bool) or (resume and save_to is None):
        raise ValueError(
            f"resume={resume!r}, save_to={save_to!r}; resume must be True or False, and needs save_to, a file"
        )
