"""The training loop."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.checks import training as checks
from course_lib.training.checkpoint import Checkpoint
from course_lib.training.config import TrainingConfig
from course_lib.training.evaluation import Evaluation, Evaluator
from course_lib.training.history import History, Progress, ProgressReporter
from course_lib.training.step import next_batches, train_step
from course_lib.validation import validated


@validated(checks.fit, calls_back=True)
def fit(
    model: nn.Module,
    batches: Iterable[Any],
    loss: Callable[[nn.Module, Any], Tensor],
    *,
    steps: int,
    lr: float | Callable[[int], float] | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    evaluation: Evaluation | None = None,
    callback: Callable[[Progress], None] | None = None,
    seed: int = 0,
    config: TrainingConfig = TrainingConfig(),  # noqa: B008 (it is frozen)
) -> History:
    """Repeat `train_step`, and leave the model in evaluation mode.

    Interrupting it (the stop button, Ctrl-C) ends training early and keeps what was learned.

    With `checkpoint_path` and `resume` in `config`, training that was killed continues from its last
    checkpoint, and reaches the same losses and weights, bit for bit, as if it had not been killed. For
    that, the functions given must keep nothing between calls and draw random numbers from PyTorch's
    global generators only, and `batches` must give the same sequence when iterated anew, as `PairBatches`
    does: those used are skipped. A generator that was already drawn from cannot do that.

    Args:
        model: whose parameters are trained.
        batches: `gradient_accumulation_steps` per step; endless, or enough of them.
        loss: from the model and a batch to one number that carries gradients.
        steps: how many, at most.
        lr: the learning rate, or a schedule: a function from the step (1, 2, …) to the learning rate. It
            is set in every parameter group of the optimizer. Left out, the optimizer's own learning
            rates stay (1e-3 in Adam).
        optimizer: of the model's parameters; its state continues from where it is. Left out, a new
            `torch.optim.Adam(model.parameters(), fused=True)`.
        evaluation: scores on held-out data, and early stopping.
        callback: called after each step, e.g. a `LossPicture`.
        seed: of everything that draws random numbers during training, such as dropout.
        config: gradient clipping and accumulation, precision and checkpoints.

    Returns:
        Losses, scores, and why training ended. A resumed training that had ended is returned at once, or
        continues if `steps` is larger now; the score of its old end stays in the history.

    Raises:
        ValueError: for settings out of range, too few batches, and a checkpoint that is damaged, has more
            steps, or was written with another model, optimizer or setting.
        FloatingPointError: when the loss or a gradient is no longer finite; the weights are those before
            that step.
    """
    optimizer = optimizer or torch.optim.Adam(model.parameters(), fused=True)
    history, evaluator = History(stopped=None), Evaluator(evaluation)
    reporter = ProgressReporter(callback, history, steps)
    checkpoint = Checkpoint(config, model, optimizer, evaluator, history, lr=lr, seed=seed)
    with _seeded(seed, model), _ending(model, evaluator, reporter):
        source = iter(batches)
        checkpoint.resume(source, steps)
        while history.stopped is None:
            step = len(history.losses) + 1
            _set_lr(optimizer, lr, step)
            with _named(step):
                last_loss = train_step(
                    model,
                    optimizer,
                    loss,
                    next_batches(source, config.gradient_accumulation_steps, step),
                    max_grad_norm=config.max_grad_norm,
                    token_count=config.token_count,
                    precision=config.precision,
                )
            history.losses.append(last_loss)
            score = evaluator.score(model, step, last=step == steps)
            if score is not None:
                history.scores[step] = score
            history.stopped = evaluator.stops(score) or ("steps" if step == steps else None)
            reporter.report(score)
            checkpoint.save()
    return history


def _set_lr(
    optimizer: torch.optim.Optimizer, lr: float | Callable[[int], float] | None, step: int
) -> None:
    """Set the learning rate of this step in every parameter group."""
    if lr is None:
        return
    value = lr(step) if callable(lr) else lr
    checks.returned_lr(value, step)
    for group in optimizer.param_groups:
        group["lr"] = value


@contextmanager
def _seeded(seed: int, model: nn.Module) -> Iterator[None]:
    """Seed PyTorch's generators, and put their state back afterwards."""
    device = next(model.parameters()).device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(int(seed))
        yield


@contextmanager
def _named(step: int) -> Iterator[None]:
    """Add the number of the step to an error."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in training step {step}")
        raise


@contextmanager
def _ending(model: nn.Module, evaluator: Evaluator, reporter: ProgressReporter) -> Iterator[None]:
    """However training ends, keep what was learned, in evaluation mode, and report it."""
    history = reporter.history
    try:
        yield
    except KeyboardInterrupt:
        history.stopped = "interrupted"
    finally:
        planned = history.stopped in ("steps", "target_score", "patience")
        history.stopped = history.stopped or "failed"
        if evaluator.best_weights is not None:
            model.load_state_dict(evaluator.best_weights)
        model.eval()
        if not planned and history.losses:
            reporter.report()
