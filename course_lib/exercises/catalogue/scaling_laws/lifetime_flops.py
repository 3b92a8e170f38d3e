"""Training and inference for a given loss."""

import torch


def lifetime_flops(N, target, E, A, B, alpha, beta, served):
    left = target - E - A / N**alpha  # what finite training may cost, (size,)
    D = torch.where(left > 0, (B / left.clamp(min=1e-12)) ** (1 / beta), torch.inf)
    return 6 * N * D + 2 * N * served


TOKENS = "torch.where(left > 0, (B / left.clamp(min=1e-12)) ** (1 / beta), torch.inf)"
MISTAKES = f"""
6 * N * D + 2 * N * served -> 6 * N * D
    Inference is missing: 2 N FLOPs for each token served.
6 * N * D + 2 * N * served -> 2 * N * served
    Training is missing: 6 N D FLOPs.
6 * N * D -> 2 * N * D
    You train with 2 FLOPs per parameter and token. The backward pass costs 4 more.
6 * N * D -> 4 * N * D
    You train with 4 FLOPs per parameter and token. The backward pass needs two products for each one of the forward
    pass: 6 in all.
6 * N * D -> 3 * N * D
    You train with 3 FLOPs per parameter and token. A multiplication and an addition are 2, so it is 6 in all.
6 * N * D -> 6 * D
    The FLOPs of training do not grow with the size in your code. Each token costs 6 N.
2 * N * served -> 6 * N * served
    You serve with 6 FLOPs per parameter and token. Inference has no backward pass: 2.
2 * N * served -> N * served
    You serve with 1 FLOP per parameter and token. A multiplication and an addition are 2.
2 * N * served -> 2 * served
    The FLOPs of inference do not grow with the size in your code. Each token served costs 2 N.
2 * N * served -> 2 * N * D
    You serve the training tokens again. Inference costs 2 N for each of the tokens `served`.
6 * N * D + 2 * N * served -> 6 * N * D * served
    You multiply by the tokens served. Training is paid once: add 2 N for each token served.
2 * N * served -> 2 * N * (served + D)
    You add the training tokens to those served, which counts their forward pass twice.
target - E - A -> target - A
    E is missing. What is left for the text is target - E - A / N^alpha.
target - E - A -> target + E - A
    The sign of E is wrong. What is left for the text is target - E - A / N^alpha.
E - A / N**alpha -> E - 0 * N
    You leave no loss to the size: what is left for the text is target - E - A / N^alpha.
E - A / N**alpha -> E + A / N**alpha
    You add the size term. It leaves less for the text: target - E - A / N^alpha.
A / N**alpha -> A * N**alpha
    Your size term grows with N. It is A / N^alpha.
A / N**alpha -> A / (N * alpha)
    You multiply N by alpha. The size term is A / N^alpha, a power.
A / N**alpha -> (A / N) ** alpha
    You raise A to the power of alpha, too. The size term is A / N^alpha.
A / N**alpha -> A / N**beta
    Your size term has beta, the exponent of the text. It is A / N^alpha.
A / N**alpha -> B / N**alpha
    Your size term has B, the coefficient of the text. It is A / N^alpha.
(B / left -> (A / left
    Your text term has A, the coefficient of the size. It is B / D^beta.
target - E - A / N**alpha -> (target - E - A / N**alpha).abs()
    A model whose size term alone is above target - E never reaches the target, however much it reads. Its FLOPs are
    infinite.
{TOKENS} -> (B / left.clamp(min=1e-3)) ** (1 / beta)
{TOKENS} -> (B / left.clamp(min=1e-6)) ** (1 / beta)
{TOKENS} -> (B / left.clamp(min=1e-8)) ** (1 / beta)
{TOKENS} -> (B / left.clamp(min=1e-9)) ** (1 / beta)
{TOKENS} -> (B / left.clamp(min=1e-10)) ** (1 / beta)
{TOKENS} -> (B / left.clamp(min=1e-12)) ** (1 / beta)
    A model that is too small for the target gets a large, finite number of tokens. No number is enough: infinity.
torch.inf -> 0.0
    A model that is too small for the target trains on no tokens here. No number is enough: infinity.
{TOKENS} -> (B / left) ** (1 / beta)
torch.inf -> torch.nan
    A model that is too small for the target gets negative FLOPs or NaN. It never reaches the target: its FLOPs are
    infinite.
left > 0 -> left < 0
    Your condition is reversed: the sizes that reach the target are those with left > 0.
** (1 / beta) -> ** beta
    Solve B / D^beta = left for D: the exponent is 1 / beta, not beta.
** (1 / beta) ->
    Solve B / D^beta = left for D: the exponent 1 / beta is missing.
** (1 / beta) -> / beta
    You divide by beta. Solve B / D^beta = left for D: a power with the exponent 1 / beta.
(B / left.clamp(min=1e-12)) ** (1 / beta) -> B / left.clamp(min=1e-12) ** (1 / beta)
    You leave B out of the power. D = (B / left)^(1 / beta).
** (1 / beta) -> ** (1 / alpha)
    You take the root with alpha, the exponent of the size. The text has beta.
** (1 / beta) -> ** (-1 / beta)
    Your fraction is upside down: the less is left for the text, the more tokens are needed. D = (B / left)^(1 /
    beta).
"""

CASES = (
    dict(
        N=torch.tensor([1.0, 4.0, 16.0]),
        target=4.0,
        E=1.0,
        A=4.0,
        B=8.0,
        alpha=0.5,
        beta=1.0,
        served=10.0,
    ),
    dict(
        N=torch.tensor([1.0, 9.0, 25.0, 100.0, 400.0]),
        target=2.5,
        E=1.5,
        A=4.0,
        B=6.0,
        alpha=0.5,
        beta=0.4,
        served=5000.0,
    ),
)
HINTS = """
Solve target = E + A / N^alpha + B / D^beta for D.
D = (B / (target - E - A / N^alpha))^(1 / beta), and infinity where the bracket is not above 0.
torch.where(left > 0, (B / left) ** (1 / beta), torch.inf), then 6 * N * D + 2 * N * served.
"""
DIFFERENTIABLE = False
