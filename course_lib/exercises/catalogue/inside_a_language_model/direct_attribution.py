"""Direct attribution of a logit difference."""

import torch
import torch.nn.functional as F

from course_lib.exercises.catalogue._shared import random_tensor


def direct_attribution(parts, gain, E, right, wrong):
    stream = parts.sum(dim=0)  # (d,)
    root = (stream.square().mean() + 1e-5).sqrt()  # one for all parts
    return (parts * gain / root) @ (E[right] - E[wrong])  # (parts,)


def reference(parts, gain, E, right, wrong):
    """What PyTorch's RMSNorm makes of the whole stream, divided among the parts component by component, in float64."""
    parts, gain, E = parts.double(), gain.double(), E.double()
    whole = parts.sum(dim=0)
    scale = F.rms_norm(whole, whole.shape, None, 1e-5).norm() / whole.norm()
    logits = scale * (parts @ (gain * E).T)  # (parts, vocabulary)
    return logits[:, right] - logits[:, wrong]


TERMS = "(parts * gain / root) @ (E[right] - E[wrong])"
MISTAKES = rf"""
stream.square().mean() -> parts.square().mean(dim=-1, keepdim=True)
    You normalise each part by itself, so the terms do not add up to the logit difference. Divide all parts by the one
    root mean square of their sum.
stream.square().mean() -> parts.square().mean()
    You take the mean square over all parts. It must be that of the stream, the sum of the parts.
(stream.square().mean() + 1e-5).sqrt() -> 1.0
    The terms are not divided by the root mean square of the stream.
stream.square().mean() -> stream.square().sum()
    You divide by the norm of the stream. RMSNorm divides by the root of the *mean* square.
.sqrt() ->
    The square root is missing.
parts * gain / root -> parts / root
    The gain of the RMSNorm is missing.
parts * gain / root -> parts / gain / root
    You divide by the gain. RMSNorm multiplies by it.
E[right] - E[wrong] -> E[right]
    These are terms of one logit. Subtract those of `wrong`.
E[right] - E[wrong] -> E[wrong] - E[right]
    The sign is reversed: `right` minus `wrong`.
E[right] - E[wrong] -> E[right] + E[wrong]
    You add the two logits. Subtract that of `wrong`.
E[right] - E[wrong] -> E[right] - E.mean(dim=0)
    You compare with the mean of all logits. Compare with the logit of `wrong`.
{TERMS} -> ({TERMS}).sum()
    This is the whole logit difference. Return one term for each part.
{TERMS} -> ({TERMS}) / ({TERMS}).sum()
    These are shares of the difference. Return the terms themselves.
{TERMS} -> ({TERMS}).abs()
    A part can lower the difference: keep the signs.
{TERMS} -> (stream * gain / root) @ (E[right] - E[wrong]) - {TERMS}
    This is what is left without each part. Return what each part adds.
{TERMS} -> ({TERMS}).cumsum(dim=0)
    You add up the terms from part to part. Each is that of one part alone.
{TERMS} -> (parts * gain / root) * (E[right] - E[wrong])
    These are the products of the components. Sum them: a logit is a dot product.
{TERMS} -> (parts * gain / root) @ E.T
    These are the terms of all logits. Return the difference of two of them.
parts * gain / root -> parts * gain**2 / root
    The gain is in your result twice. The norm multiplies by it once.
mean() + 1e-5).sqrt() -> mean()).sqrt()
(stream.square().mean() + 1e-5).sqrt() -> (stream.square().mean().sqrt() + 1e-5)
    eps, 1e-5, is added to the mean square, under the root.
"""

CASES = (
    dict(
        parts=torch.tensor([[1.0, 0.0], [2.0, 1.0]]),
        gain=torch.tensor([1.0, 2.0]),
        E=torch.tensor([[1.0, 0.0], [0.0, 3.0], [2.0, 1.0]]),
        right=0,
        wrong=1,
    ),
    dict(
        parts=random_tensor(5, 4, seed=1),
        gain=random_tensor(4, seed=2).abs() + 0.5,
        E=random_tensor(7, 4, seed=3),
        right=4,
        wrong=2,
    ),
)
HINTS = """
The stream is the sum of the parts. What does RMSNorm divide it by, and what does it multiply by?
Every part is multiplied by gain and divided by the same root, then by the rows of E.
root = (parts.sum(0).square().mean() + 1e-5).sqrt(); the terms are (parts * gain / root) @ (E[right] - E[wrong]).
"""
