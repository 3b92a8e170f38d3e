"""Mixture of experts: a router sends each token to a few of many feed-forward networks."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.transformer.layers import FeedForward
from course_lib.validation import require_divides, require_one_of, require_whole

SCORES = ("softmax", "sigmoid")


class Routing(NamedTuple):
    """Where each token goes.

    Attributes:
        experts: (token, k), the numbers of its experts.
        weights: (token, k), what their outputs are multiplied with.
        scores: (token, expert), of all experts, without the bias.
    """

    experts: Tensor
    weights: Tensor
    scores: Tensor


class Router(nn.Module):
    r"""Choose `k` experts per token by the scores of one linear layer.

    $$s = \mathrm{softmax}(W x) \text{ or } \sigma(W x), \qquad T = \text{top-}k\,(s + b), \qquad
      w_e = \lambda\, s_e \Big/ \sum_{e' \in T} s_{e'}$$

    The bias $b$ counts for choosing alone, never for weighing. `balance` moves it against the load, after a step of
    training and without a gradient; DeepSeek-V3 keeps a small term in the loss beside it, against extreme imbalance
    within one sequence. With groups only the experts of the `kept_groups` best groups can be chosen; the score of a group is
    the sum of its two best $s + b$.

    Args:
        d_model: of a token.
        num_experts: how many there are.
        k: how many a token goes to.
        scores: "softmax" over all experts, or "sigmoid", each by itself.
        normalise: whether the weights of a token are divided by their sum. With `k` = 1 the weight is then 1, and the
            router gets no gradient.
        scale: $\lambda$.
        groups: how many groups of consecutive experts.
        kept_groups: from how many of them the experts are chosen.

    Source: Shazeer et al. (2017), "Outrageously large neural networks"; DeepSeek-AI (2024), "DeepSeek-V3", section 2.1.2;
    Wang et al. (2024), "Auxiliary-loss-free load balancing".
    """

    def __init__(
        self,
        d_model: int,
        num_experts: int,
        k: int,
        *,
        scores: str = "softmax",
        normalise: bool = True,
        scale: float = 1.0,
        groups: int = 1,
        kept_groups: int = 1,
    ) -> None:
        super().__init__()
        require_one_of(SCORES, scores=scores)
        require_divides(groups=groups, num_experts=num_experts)
        require_whole(k=k, kept_groups=kept_groups)
        if k > kept_groups * num_experts // groups:
            raise ValueError(
                f"k={k} is more than the {kept_groups * num_experts // groups} experts to choose from"
            )
        self.k, self.kind, self.normalise, self.scale = k, scores, normalise, scale
        self.groups, self.kept_groups = groups, kept_groups
        self.weight = nn.Parameter(torch.randn(num_experts, d_model) * d_model**-0.5)
        self.bias = nn.Buffer(torch.zeros(num_experts))

    def forward(self, x: Float[Tensor, "token d_model"]) -> Routing:
        """Return the experts and the weights of each token."""
        logits = F.linear(x, self.weight)  # (token, expert)
        scores = logits.softmax(-1) if self.kind == "softmax" else logits.sigmoid()
        choice = scores + self.bias
        if self.groups > 1:
            grouped = choice.unflatten(-1, (self.groups, -1))  # (token, group, expert)
            best = grouped.topk(min(2, grouped.shape[-1]), dim=-1).values.sum(-1)
            kept = best.topk(self.kept_groups, dim=-1).indices
            lost = torch.ones_like(best, dtype=torch.bool).scatter(-1, kept, False)
            choice = grouped.masked_fill(lost[..., None], -torch.inf).flatten(1)
        experts = choice.topk(self.k, dim=-1).indices
        weights = scores.gather(-1, experts)
        if self.normalise:
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
        return Routing(experts, weights * self.scale, scores)

    @torch.no_grad()
    def balance(self, experts: Int[Tensor, "token k"], rate: float = 1e-3) -> None:
        """Lower the bias of experts with more than their share of these tokens by `rate`, raise that of the others."""
        load = experts.flatten().bincount(minlength=len(self.bias)).to(self.bias)
        self.bias += rate * (load.mean() - load).sign()


class ExpertLayer(nn.Module):
    r"""A router with its experts, each a SwiGLU network, and a shared network that every token passes.

    $$y = \mathrm{FFN}_\text{shared}(x) + \sum_{e \in T} w_e\, \mathrm{FFN}_e(x)$$

    Args:
        router: that chooses the experts.
        d_ff: the number of hidden units of one expert.
        d_shared: of the shared network; 0 for none.

    Source: Dai et al. (2024), "DeepSeekMoE", equations 3 to 5 and 9.
    """

    def __init__(self, router: Router, d_ff: int, *, d_shared: int = 0) -> None:
        super().__init__()
        num_experts, d_model = router.weight.shape
        self.router = router
        self.up_gate = nn.Parameter(torch.randn(num_experts, 2 * d_ff, d_model) * d_model**-0.5)
        self.down = nn.Parameter(torch.randn(num_experts, d_model, d_ff) * d_ff**-0.5)
        options = {"activation": "swiglu", "bias": False}
        self.shared = FeedForward(d_model, d_shared, **options) if d_shared else None

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Send each token to its experts and add what they return."""
        tokens = x.reshape(-1, x.shape[-1])  # (token, d_model)
        routing = self.router(tokens)
        output = torch.zeros_like(tokens) if self.shared is None else self.shared(tokens)
        for expert, (up_gate, down) in enumerate(zip(self.up_gate, self.down, strict=True)):
            token, place = (routing.experts == expert).nonzero(as_tuple=True)
            gate, up = F.linear(tokens[token], up_gate).chunk(2, dim=-1)
            sent = F.linear(F.silu(gate) * up, down) * routing.weights[token, place, None]
            output = output.index_add(0, token, sent)
        return output.view(x.shape)
