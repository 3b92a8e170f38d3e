"""What `course_lib.training` refuses.

The `returned_…` checks look at what a function of the caller returned while training runs.
"""

import math
from collections.abc import Iterable
from numbers import Real
from pathlib import Path

import torch
from torch import Tensor, nn

from course_lib.validation import (
    require_axes,
    require_floating,
    require_one_of,
    require_positive,
    require_probability,
    require_tensor,
    require_tokens,
    require_whole,
    short_name,
)

PRECISIONS = ("float32", "bfloat16")


# --- the loop and its settings ---------------------------------------------------------------


def fit(
    model,
    batches,
    loss,
    *,
    steps,
    lr=None,
    optimizer=None,
    evaluation=None,
    callback=None,
    seed=0,
    config=None,
):
    """Check a training before it starts."""
    _require_model(model)
    require_whole(steps=steps)
    require_whole(seed=seed, at_least=0)
    if not isinstance(batches, Iterable):
        raise ValueError(
            f"batches is a {type(batches).__name__}; it must be something to iterate over, e.g. a list of batches"
        )
    if lr is not None and not callable(lr):
        require_positive(lr=lr)
    if optimizer is not None:
        _require_optimizer(optimizer, model)
    _require_function(loss=loss)
    if callback is not None:
        _require_function(callback=callback)
    if evaluation is not None and not hasattr(evaluation, "evaluate"):
        raise ValueError(
            f"evaluation is a {type(evaluation).__name__}; it must be an Evaluation, "
            f"e.g. Evaluation(evaluate, every=100)"
        )
    if config is not None and not hasattr(config, "max_grad_norm"):
        raise ValueError(
            f"config is a {type(config).__name__}; it must be a TrainingConfig, "
            f"e.g. TrainingConfig(max_grad_norm=1.0)"
        )
    if config is not None and config.checkpoint_path is not None:
        _require_checkpoint(config.checkpoint_path, model)


def training_config(config):
    """Check every setting."""
    require_positive(max_grad_norm=config.max_grad_norm)
    require_whole(gradient_accumulation_steps=config.gradient_accumulation_steps)
    if config.token_count is not None:
        _require_function(token_count=config.token_count)
    require_one_of(PRECISIONS, precision=config.precision)
    require_whole(checkpoint_every=config.checkpoint_every)
    path, resume = config.checkpoint_path, config.resume
    if not isinstance(resume, bool) or (resume and path is None):
        raise ValueError(
            f"resume={resume!r}, checkpoint_path={path!r}; resume must be True or False, and needs "
            f"checkpoint_path, a file"
        )


def evaluation(evaluation):
    """Check every setting."""
    _require_function(evaluate=evaluation.evaluate)
    require_whole(every=evaluation.every)
    if evaluation.patience is not None:
        require_whole(patience=evaluation.patience)
    if evaluation.target_score is not None and not _is_number(evaluation.target_score):
        raise ValueError(f"target_score={evaluation.target_score!r} must be a number")


def train_step(
    model, optimizer, loss, batches, *, max_grad_norm=1.0, token_count=None, precision="float32"
):
    """Check the model, its optimizer and the settings of a step."""
    _require_model(model)
    _require_optimizer(optimizer, model)
    _require_function(loss=loss)
    if not isinstance(batches, list) or not batches:
        came = "an empty list" if batches == [] else f"a {type(batches).__name__}"
        raise ValueError(f"batches is {came}; it must be a list of batches, e.g. [batch]")
    require_positive(max_grad_norm=max_grad_norm)
    if token_count is not None:
        _require_function(token_count=token_count)
    require_one_of(PRECISIONS, precision=precision)


def _require_function(**functions):
    for name, function in functions.items():
        if not callable(function) or isinstance(function, type):
            raise ValueError(
                f"{name}={function!r} must be a function, or an object that can be called"
            )


def _require_model(model):
    if not isinstance(model, nn.Module):
        raise ValueError(f"model is a {type(model).__name__}; it must be an nn.Module")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError("model has no parameter that can be trained (requires_grad)")
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and parameter.dtype == torch.float16:
            raise ValueError(
                f"model has {name} in float16, in which gradients and Adam's ε of 1e-8 become 0; train in "
                f'float32, e.g. model.float(), with precision="bfloat16" for speed'
            )


def _require_optimizer(optimizer, model):
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise ValueError(
            f"optimizer is a {type(optimizer).__name__}; it must be a torch.optim.Optimizer, "
            f"e.g. torch.optim.SGD(model.parameters(), lr=0.1)"
        )
    given = {id(one) for group in optimizer.param_groups for one in group["params"]}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and id(parameter) not in given:
            raise ValueError(
                f"optimizer lacks {name}, which requires gradients; make the optimizer from "
                f"model.parameters(), or freeze {name} with requires_grad_(False)"
            )
    if given - {id(parameter) for parameter in model.parameters()}:
        raise ValueError("optimizer has a parameter that is not one of the model's")


def _require_checkpoint(path, model):
    if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():
        raise ValueError(f"checkpoint_path={str(path)!r} is no plain file, but a device or a pipe")
    if Path(path).is_dir() or not Path(path).parent.is_dir():
        raise ValueError(f"checkpoint_path={str(path)!r} must be a file in a folder that exists")
    for name, value in model.state_dict().items():
        if not isinstance(value, Tensor):
            raise ValueError(
                f"model has a {type(value).__name__} as {name} in its state; checkpoint_path needs "
                f"tensors"
            )


# --- what functions of the caller return -----------------------------------------------------


def returned_loss(loss):
    """Refuse what gradients cannot be computed from."""
    if not isinstance(loss, Tensor) or loss.numel() != 1 or not loss.requires_grad:
        came = f"a {type(loss).__name__}"
        if isinstance(loss, Tensor):
            came = f"shape {tuple(loss.shape)}, requires_grad={loss.requires_grad}"
        raise ValueError(
            f"loss returned {came}; it must return a tensor of one number that carries gradients"
        )


def returned_token_count(count):
    """Refuse a weight that is not a finite number above 0."""
    if isinstance(count, Tensor) and count.numel() == 1:
        count = count.item()
    if not isinstance(count, Real) or not 0 < count < math.inf:
        raise ValueError(f"token_count gave {count!r}; it must give a finite number above 0")


def returned_lr(lr, step):
    """Refuse a learning rate that is not a finite number, 0 or more."""
    if not isinstance(lr, Real) or not 0 <= lr < math.inf:
        raise ValueError(f"lr gave {lr} at step {step}; it must give a finite number, 0 or more")


def returned_score(score, step):
    """Refuse what cannot be compared with another score."""
    if isinstance(score, Tensor) and score.numel() == 1:
        score = score.item()
    if not _is_number(score):
        raise ValueError(f"evaluate returned {score!r} at step {step}; it must return a number")


def _is_number(value):
    return isinstance(value, Real) and not isinstance(value, bool) and value == value


# --- losses ----------------------------------------------------------------------------------


def label_smoothing_init(self, smoothing=0.1, ignore_index=-100):
    """Check both settings."""
    require_probability(smoothing=smoothing)
    require_whole(at_least=-(2**63), ignore_index=ignore_index)


def label_smoothing_forward(self, logits, target):
    """Check that there is a class for each row of logits."""
    require_floating(logits=logits)
    require_axes(1, "(…, classes)", logits=logits)
    require_tensor(target=target)
    if target.shape != logits.shape[:-1] or target.dtype not in (torch.int64, torch.int32):
        raise ValueError(
            f"target has shape {tuple(target.shape)} and dtype {short_name(target.dtype)}; for "
            f"logits of shape {tuple(logits.shape)} it must be whole numbers (int64 or int32) of "
            f"shape {tuple(logits.shape[:-1])}"
        )
    counted = target[target != self.ignore_index]
    if counted.numel() == 0:
        raise ValueError(
            f"target has shape {tuple(target.shape)} and nothing but ignore_index="
            f"{self.ignore_index}; there is nothing to predict"
        )
    lowest, highest = (bound.item() for bound in counted.aminmax())
    if lowest < 0 or highest >= logits.shape[-1]:
        raise ValueError(
            f"target holds {lowest if lowest < 0 else highest}; it must be a class, 0 to "
            f"{logits.shape[-1] - 1}, or ignore_index={self.ignore_index}"
        )


def next_token_loss(logits, target, *, pad_id=0, smoothing=0.0):
    """Check that each token but the first has a row of logits."""
    require_floating(logits=logits)
    require_axes(3, "(batch, length, vocabulary)", 3, logits=logits)
    require_tokens(logits.shape[-1], target=target)
    require_whole(-(2**63), pad_id=pad_id)
    require_probability(smoothing=smoothing)
    if logits.shape[:-1] != (len(target), target.shape[1] - 1):
        raise ValueError(
            f"logits has shape {tuple(logits.shape)}, target {tuple(target.shape)}; there must be one "
            f"row of logits for every target token but the first"
        )
    if (target[:, 1:] == pad_id).all():
        raise ValueError(
            f"target has shape {tuple(target.shape)} and only padding after its first tokens; "
            f"there is nothing to predict"
        )


# --- learning rates --------------------------------------------------------------------------


def linear_schedule_with_warmup(step, peak_lr, steps, warmup):
    """Check the ranges of the step and of the warm-up."""
    require_positive(peak_lr=peak_lr)
    require_whole(step=step, steps=steps, warmup=warmup)
    for name, number in (("step", step), ("warmup", warmup)):
        if number > steps:
            raise ValueError(f"{name}={number} is above steps={steps}")


def noam_lr(step, d_model, warmup):
    """Check that all three are whole numbers above 0."""
    require_whole(step=step, d_model=d_model, warmup=warmup)
