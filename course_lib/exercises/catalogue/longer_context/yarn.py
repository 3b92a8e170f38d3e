"""YaRN's frequencies."""

import math

import torch

from course_lib.transformer.positions.sinusoidal import frequencies


def yarn(omega, scale, trained):
    rotations = trained * omega / (2 * math.pi)  # (pair,), within the training length
    kept = ((rotations - 1) / (32 - 1)).clamp(0, 1)  # 1 for fast pairs, 0 for slow ones
    return kept * omega + (1 - kept) * omega / scale


def reference(omega, scale, trained):
    """One pair at a time, from its wavelength."""
    extended = []
    for speed in omega.tolist():
        rotations = trained / (2 * math.pi / speed)
        if rotations >= 32:
            extended.append(speed)
        elif rotations <= 1:
            extended.append(speed / scale)
        else:
            kept = (rotations - 1) / 31
            extended.append(kept * speed + (1 - kept) * speed / scale)
    return torch.tensor(extended)


KEPT = "((rotations - 1) / (32 - 1)).clamp(0, 1)"
MIXED = "kept * omega + (1 - kept) * omega / scale"
MISTAKES = rf"""
{MIXED} -> omega / scale
trained * omega -> omega
    Every frequency is divided by the scale. That is position interpolation; here pairs with many rotations within
    `trained` positions keep their frequency.
{MIXED} -> omega
    All frequencies are unchanged. Pairs with at most one rotation are to be divided by the scale.
{MIXED} -> omega * scale ** (-torch.arange(len(omega)) / (len(omega) - 1))
    These are the frequencies of a larger base (NTK-aware scaling). YaRN looks at the rotations of each pair within
    the training length.
kept = ( -> kept = 1 - (
    You divide the fast pairs and keep the slow ones. The slow pairs are those whose angles would be new beyond the
    training length.
.clamp(0, 1) ->
    Your γ goes below 0 and above 1. Clamp it: below 1 rotation it is 0, above 32 it is 1.
.clamp(0, 1) -> .clamp(min=0)
    Your γ goes above 1. Clamp it there too: above 32 rotations it is 1.
.clamp(0, 1) -> .clamp(max=1)
    Your γ goes below 0. Clamp it there too: below 1 rotation it is 0.
/ (2 * math.pi) ->
    trained · ω is an angle in radians. A full rotation is 2π radians.
/ (2 * math.pi) -> * (2 * math.pi)
    You multiply by 2π. ω is in radians per position: divide trained · ω by 2π to get rotations.
(2 * math.pi) -> 360
    You divide by 360, as if ω were in degrees. It is in radians: a full rotation is 2π.
(2 * math.pi) -> math.pi
    You divide by π, which counts half rotations. A full rotation is 2π radians.
(2 * math.pi) -> 2 * math.pi
    x / 2 * math.pi is (x / 2) · π. Put the divisor in parentheses: x / (2 * math.pi).
trained * omega / (2 * math.pi) -> 2 * math.pi / omega
    You use the wavelength as the number of rotations. The rotations are trained / wavelength.
trained * omega / (2 * math.pi) -> 2 * math.pi / omega / trained
    You divide the wavelength by the training length. The rotations are trained / wavelength.

trained * omega -> scale * trained * omega
    You count the rotations within the new length. Count those within the training length.
trained * omega -> trained * omega / scale
    You count the rotations of the divided frequencies. Count those of ω, within the training length.
rotations - 1 -> rotations.floor() - 1
rotations - 1 -> rotations.round() - 1
    You count whole rotations only. γ grows linearly with the number of rotations, fractions included.
{KEPT} -> (rotations / 32).clamp(max=1) * (rotations > 1)
    Your γ is rotations / 32 between 1 and 32 rotations, so it jumps at 1. It must grow linearly from 0 at 1 rotation
    to 1 at 32.
{KEPT} -> (rotations > 1).float()
{KEPT} -> (rotations >= 32).float()
{KEPT} -> (rotations > 16.5).float()
    Pairs with more than one rotation and fewer than 32 are either kept or divided in your code. Between 1 and 32 the
    frequency is a mix.
(rotations - 1) / (32 - 1) -> rotations / 32
    Your γ is 0 at 0 rotations. It must be 0 at 1 rotation and 1 at 32.
(rotations - 1) / (32 - 1) -> rotations / (32 - 1)
    Your γ is 0 at 0 rotations and 1 at 31. It must be 0 at 1 rotation and 1 at 32.
(32 - 1) -> 32
    You divide by 32, so your γ is 1 only at 33 rotations. From 1 to 32 it is a distance of 31.
(rotations - 1) / (32 - 1) -> rotations.log() / math.log(32)
    Your γ grows with the logarithm of the rotations. It grows linearly with their number.
{KEPT} -> {KEPT} ** 2
    Your γ grows with a square. It grows linearly with the number of rotations.
{MIXED} -> omega / (kept + (1 - kept) * scale)
    Between 1 and 32 rotations you mix the wavelengths. Mix the frequencies: γ ω + (1 - γ) ω / scale.
{MIXED} -> omega * scale ** (kept - 1)
    Between 1 and 32 rotations you mix the logarithms of the frequencies. Mix the frequencies: γ ω + (1 - γ) ω /
    scale.
/ scale -> * scale
    The slow pairs become faster: you multiply their frequency by the scale. Divide.
/ scale -> / scale**0.5
    You divide by the root of the scale. Slow pairs get ω / scale.
(1 - kept) * omega -> (1 - kept)
    In the second term ω is missing: (1 - γ) ω / scale.
kept * omega + -> kept +
    In the first term ω is missing: γ ω.
kept * omega + -> omega +
    In the first term γ is missing: γ ω.
(1 - kept) * ->
    In the second term 1 - γ is missing: (1 - γ) ω / scale.
{MIXED} -> ({MIXED}) * (0.1 * math.log(scale) + 1)
    You multiply the frequencies by YaRN's factor for the queries and keys, 0.1 ln(scale) + 1. Return the frequencies
    alone.
"""

CASES = (
    dict(omega=torch.tensor([1.0, 0.1, 0.01]), scale=4.0, trained=128),
    dict(omega=frequencies(16, 10000.0).float(), scale=8.0, trained=4096),
    dict(omega=frequencies(32, 500000.0).float(), scale=2.0, trained=512),
)
HINTS = """
How many rotations does a pair with frequency ω, in radians per position, complete within `trained` positions?
rotations = trained * omega / (2 * math.pi). A linear function of it is 0 at 1 and 1 at 32; clamp it to 0 … 1 for the
    pairs outside.
kept = ((rotations - 1) / 31).clamp(0, 1), then kept * omega + (1 - kept) * omega / scale.
"""
DIFFERENTIABLE = False
