"""Look inside: the weights of every attention layer of a model, and what can be said of them in one number."""

import contextlib
import inspect
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.transformer.attention import AttentionOutput

__all__ = ["AttentionMap", "entropy", "mean_distance", "record_attention", "weights_version"]


@contextlib.contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, list[Tensor]]]:
    """Collect the weights of every attention layer in a model, while the `with` block runs::

        with record_attention(model) as maps:
            model(x)
        maps["layers.0.attention"][-1]  # (batch, heads, query, key)

    A layer is a module that returns `AttentionOutput` and is not part of another one that does, or PyTorch's
    `nn.MultiheadAttention`, as in `nn.Transformer`. Its name is its place in the model, as in `model.named_modules()`; ""
    is the model itself. Each call adds a tensor to the layer's list, without gradient; a layer without heads counts as one
    head. Layers that leave their weights out to be quick are asked for them. Models of Hugging Face give their weights
    themselves: load them with `attn_implementation="eager"`, and call them with `output_attentions=True`.

    Raises:
        ValueError: on leaving the block, if nothing was recorded.
    """
    maps: dict[str, list[Tensor]] = {}
    before: dict[str, dict[str, int]] = {}  # layer → what was recorded inside it before this call

    def inside(name: str) -> list[str]:
        return [other for other in maps if not name or other.startswith(f"{name}.")]

    def watch(name: str, layer: nn.Module) -> None:
        wanted = inspect.signature(layer.forward).parameters.get("need_weights")
        optional = wanted is not None and wanted.kind is wanted.KEYWORD_ONLY

        def start(_, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
            before[name] = {part: len(maps[part]) for part in inside(name)}
            return args, kwargs | {"need_weights": True} if optional else kwargs

        def end(_, args: tuple, output: object) -> None:
            if not isinstance(output, AttentionOutput) or output.weights is None:
                return
            for part in inside(name):
                del maps[part][before[name].get(part, 0) :]
                if not maps[part]:
                    del maps[part]
            maps.setdefault(name, []).append(_with_heads(output.weights.detach()))

        hooks.callback(layer.register_forward_pre_hook(start, with_kwargs=True).remove)
        hooks.callback(layer.register_forward_hook(end).remove)

    def watch_pytorch(name: str, layer: nn.MultiheadAttention) -> None:
        signature, asked = inspect.signature(layer.forward), {}

        def start(_, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
            called = signature.bind(*args, **kwargs).arguments
            asked.update(need_weights=True, average_attn_weights=True)
            asked.update((key, called[key]) for key in asked.keys() & called)
            return (), called | {"need_weights": True, "average_attn_weights": False}

        def end(_, args: tuple, output: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor | None]:
            output, weights = output  # of each head
            maps.setdefault(name, []).append(weights.detach().reshape(-1, *weights.shape[-3:]))
            if asked["average_attn_weights"]:
                weights = weights.mean(dim=-3)
            return output, weights if asked["need_weights"] else None

        hooks.callback(layer.register_forward_pre_hook(start, with_kwargs=True).remove)
        hooks.callback(layer.register_forward_hook(end).remove)

    with contextlib.ExitStack() as hooks:
        kernels = torch.backends.mha  # those of whole layers pass the hooks by
        hooks.callback(kernels.set_fastpath_enabled, kernels.get_fastpath_enabled())
        kernels.set_fastpath_enabled(False)
        for name, layer in model.named_modules():
            (watch_pytorch if isinstance(layer, nn.MultiheadAttention) else watch)(name, layer)
        yield maps
    if not maps:
        theirs = any(
            type(layer).__module__.startswith("transformers.") for layer in model.modules()
        )
        advice = (
            "; models of Hugging Face give their weights themselves: load them with attn_implementation='eager', and call "
            "them with output_attentions=True"
        )
        raise ValueError(
            f"nothing was recorded: in the block no layer of this {type(model).__name__} returned an AttentionOutput "
            f"with weights{advice if theirs else ''}"
        )


class AttentionMap(NamedTuple):
    """One layer, for one pair of sequences: `weights` (heads, query, key) and the tokens of both sides.

    The keys are the queries where left out.
    """

    weights: Tensor
    queries: Sequence[str]
    keys: Sequence[str] | None = None


def entropy(weights: Float[Tensor, "*batch key"]) -> Float[Tensor, "*batch"]:
    r"""$-\sum_j \alpha_j \ln \alpha_j$ of each row, in nats: 0 where one key has all, $\ln n$ for $n$ alike.

    Rows of zeros, which may attend to nothing, have 0.
    """
    return torch.special.entr(weights).sum(-1)


def mean_distance(weights: Float[Tensor, "*batch query key"]) -> Float[Tensor, "*batch"]:
    r"""How far attention reaches: $\frac1m \sum_{i} \sum_j \alpha_{ij}\, |i + n - m - j|$, in positions.

    With more keys than queries ($n > m$) the queries are the last ones, as in `causal_mask`.
    """
    queries, keys = weights.shape[-2:]
    i = torch.arange(queries, device=weights.device)[:, None] + (keys - queries)
    j = torch.arange(keys, device=weights.device)  # (key,)
    return (weights * (i - j).abs()).sum((-2, -1)) / queries


def _with_heads(weights: Tensor) -> Tensor:
    """(batch, query, key) → (batch, 1, query, key); (query, key) → (1, 1, query, key)."""
    while weights.dim() < 4:
        weights = weights.unsqueeze(-3)
    return weights


def weights_version(model: nn.Module) -> int:
    """Return a number that changes whenever weights are changed in place, as training does."""
    return sum(weights._version for weights in model.parameters())
