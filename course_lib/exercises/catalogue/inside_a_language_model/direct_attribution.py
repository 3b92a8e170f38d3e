"""Direct attribution of a logit difference."""

import torch
import torch.nn.functional as F

from course_lib.exercises.catalogue._shared import random_tensor


def direct_attribution(components, gain, E, right, wrong):
    stream = components.sum(dim=0)  # (d,)
    root = (stream.square().mean() + 1e-5).sqrt()  # one for all components
    return (components * gain / root) @ (E[right] - E[wrong])  # (components,)


def reference(components, gain, E, right, wrong):
    """What PyTorch's RMSNorm makes of the whole stream, divided among the components, in float64."""
    components, gain, E = components.double(), gain.double(), E.double()
    whole = components.sum(dim=0)
    scale = F.rms_norm(whole, whole.shape, None, 1e-5).norm() / whole.norm()
    logits = scale * (components @ (gain * E).T)  # (components, vocabulary)
    return logits[:, right] - logits[:, wrong]


TERMS = "(components * gain / root) @ (E[right] - E[wrong])"
MISTAKES = rf"""
stream.square().mean() -> components.square().mean(dim=-1, keepdim=True)
    You normalise each component by itself, so the terms do not add up to the logit difference. Divide all of
    them by the one root mean square of their sum.
stream.square().mean() -> components.square().mean()
    You take the mean square over all components. It must be that of the stream, the sum of the components.
(stream.square().mean() + 1e-5).sqrt() -> 1.0
    The terms are not divided by the root mean square of the stream.
stream.square().mean() -> stream.square().sum()
    You divide by the norm of the stream. RMSNorm divides by the root of the *mean* square.
.sqrt() ->
    The square root is missing.
components * gain / root -> components / root
    The gain of the RMSNorm is missing.
components * gain / root -> components / gain / root
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
    This is the whole logit difference. Return one term for each component.
{TERMS} -> ({TERMS}) / ({TERMS}).sum()
    These are shares of the difference. Return the terms themselves.
{TERMS} -> ({TERMS}).abs()
    A component can lower the difference: keep the signs.
{TERMS} -> (stream * gain / root) @ (E[right] - E[wrong]) - {TERMS}
    This is what is left without each component. Return what each component adds.
{TERMS} -> ({TERMS}).cumsum(dim=0)
    You add up the terms from component to component. Each is that of one component alone.
{TERMS} -> (components * gain / root) * (E[right] - E[wrong])
    These are the products of the coordinates. Sum them: a logit is a dot product.
{TERMS} -> (components * gain / root) @ E.T
    These are the terms of all logits. Return the difference of two of them.
components * gain / root -> components * gain**2 / root
    The gain is in your result twice. The norm multiplies by it once.
mean() + 1e-5).sqrt() -> mean()).sqrt()
(stream.square().mean() + 1e-5).sqrt() -> (stream.square().mean().sqrt() + 1e-5)
    eps, 1e-5, is added to the mean square, under the root.
"""

CASES = (
    dict(
        components=torch.tensor([[1.0, 0.0], [2.0, 1.0]]),
        gain=torch.tensor([1.0, 2.0]),
        E=torch.tensor([[1.0, 0.0], [0.0, 3.0], [2.0, 1.0]]),
        right=0,
        wrong=1,
    ),
    dict(
        components=random_tensor(5, 4, seed=1),
        gain=random_tensor(4, seed=2).abs() + 0.5,
        E=random_tensor(7, 4, seed=3),
        right=4,
        wrong=2,
    ),
)
HINTS = """
The stream is the sum of the components. What does RMSNorm divide it by, and what does it multiply by?
Every component is multiplied by gain and divided by the same root, then by the rows of E.
root = (components.sum(0).square().mean() + 1e-5).sqrt(); the terms: (components * gain / root) @ (E[right] - E[wrong]).
"""
