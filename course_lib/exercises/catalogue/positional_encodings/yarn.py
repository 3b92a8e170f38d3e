"""Exercise `yarn` of notebook 06."""

import math

import torch

from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.positions.sinusoidal import frequencies


def yarn(omega, scale, trained):
    rotations = trained * omega / (2 * math.pi)  # (pair,), within the training length
    kept = ((rotations - 1) / (32 - 1)).clamp(0, 1)  # 1 for fast pairs, 0 for slow ones
    return kept * omega + (1 - kept) * omega / scale


def _reference(omega, scale, trained):
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


def _kept(rotations):
    return ((rotations - 1) / 31).clamp(0, 1)


def _rotations(omega, trained):
    return trained * omega / (2 * math.pi)


def _mixed(omega, kept, scale):
    return omega * (kept + (1 - kept) / scale)


def _ntk(omega, scale, trained):
    """What a larger base gives, for the frequencies of a whole head."""
    return omega * scale ** (-torch.arange(len(omega)) / (len(omega) - 1))


EXERCISE = Exercise(
    name="yarn",
    notebook="06_positional_encodings",
    title="YaRN's frequencies",
    reference=_reference,
    solution=yarn,
    cases=(
        Case(omega=torch.tensor([1.0, 0.1, 0.01]), scale=4.0, trained=128),
        Case(omega=frequencies(16, 10000.0).float(), scale=8.0, trained=4096),
        Case(omega=frequencies(32, 500000.0).float(), scale=2.0, trained=512),
    ),
    mistakes=(
        Mistake(
            "all_divided",
            lambda omega, scale, trained: omega / scale,
            "You divide every frequency by the scale. That is position interpolation; here pairs with many "
            "rotations keep their frequency.",
        ),
        Mistake(
            "unchanged",
            lambda omega, scale, trained: omega,
            "All frequencies are unchanged. Pairs with at most one rotation are to be divided by the scale.",
        ),
        Mistake(
            "larger_base",
            _ntk,
            "These are the frequencies of a larger base (NTK-aware scaling). YaRN looks at the rotations of each "
            "pair within the training length.",
        ),
        Mistake(
            "other_pairs",
            lambda omega, scale, trained: _mixed(
                omega, 1 - _kept(_rotations(omega, trained)), scale
            ),
            "You divide the fast pairs and keep the slow ones. The slow pairs are those whose angles would be new "
            "beyond the training length.",
        ),
        Mistake(
            "not_clamped",
            lambda omega, scale, trained: _mixed(
                omega, (_rotations(omega, trained) - 1) / 31, scale
            ),
            "Your γ goes below 0 and above 1. Clamp it: below 1 rotation it is 0, above 32 it is 1.",
        ),
        Mistake(
            "radians",
            lambda omega, scale, trained: _mixed(omega, _kept(trained * omega), scale),
            "trained · ω is an angle in radians. A full rotation is 2π radians.",
        ),
        Mistake(
            "times_two_pi",
            lambda omega, scale, trained: _mixed(
                omega, _kept(trained * omega * 2 * math.pi), scale
            ),
            "You multiply by 2π. ω is in radians per position: divide trained · ω by 2π to get rotations.",
        ),
        Mistake(
            "wavelengths",
            lambda omega, scale, trained: _mixed(omega, _kept(2 * math.pi / omega), scale),
            "You use the wavelength as the number of rotations. The rotations are trained / wavelength.",
        ),
        Mistake(
            "rotations_at_new_length",
            lambda omega, scale, trained: _mixed(
                omega, _kept(_rotations(omega, scale * trained)), scale
            ),
            "You count the rotations within the new length. Count those within the training length.",
        ),
        Mistake(
            "threshold_at_one",
            lambda omega, scale, trained: torch.where(
                _rotations(omega, trained) > 1, omega, omega / scale
            ),
            "Right for pairs with at most one rotation and with at least 32. Between them the frequency is a mix.",
        ),
        Mistake(
            "threshold_at_32",
            lambda omega, scale, trained: torch.where(
                _rotations(omega, trained) >= 32, omega, omega / scale
            ),
            "Right for pairs with at least 32 rotations and with at most one. Between them the frequency is a mix.",
        ),
        Mistake(
            "ramp_from_zero",
            lambda omega, scale, trained: _mixed(
                omega, (_rotations(omega, trained) / 32).clamp(0, 1), scale
            ),
            "Your γ is 0 at 0 rotations. It must be 0 at 1 rotation and 1 at 32.",
        ),
        Mistake(
            "wavelengths_mixed",
            lambda omega, scale, trained: (
                omega / ((k := _kept(_rotations(omega, trained))) + (1 - k) * scale)
            ),
            "Between 1 and 32 rotations you mix the wavelengths. Mix the frequencies: γ ω + (1 - γ) ω / scale.",
        ),
        Mistake(
            "multiplied",
            lambda omega, scale, trained: _mixed(
                omega, _kept(_rotations(omega, trained)), 1 / scale
            ),
            "The slow pairs become faster: you multiply their frequency by the scale. Divide.",
        ),
        Mistake(
            "divided_by_32",
            lambda omega, scale, trained: _mixed(
                omega, ((_rotations(omega, trained) - 1) / 32).clamp(0, 1), scale
            ),
            "You divide by 32, so your γ is 1 only at 33 rotations. From 1 to 32 it is a distance of 31.",
        ),
        Mistake(
            "degrees",
            lambda omega, scale, trained: _mixed(omega, _kept(trained * omega / 360), scale),
            "You divide by 360, as if ω were in degrees. It is in radians: a full rotation is 2π.",
        ),
        Mistake(
            "half_rotations",
            lambda omega, scale, trained: _mixed(omega, _kept(trained * omega / math.pi), scale),
            "You divide by π, which counts half rotations. A full rotation is 2π radians.",
        ),
        Mistake(
            "logarithmic",
            lambda omega, scale, trained: _mixed(
                omega, (_rotations(omega, trained).log() / math.log(32)).clamp(0, 1), scale
            ),
            "Your γ grows with the logarithm of the rotations. It grows linearly with their number.",
        ),
        Mistake(
            "whole_rotations",
            lambda omega, scale, trained: _mixed(
                omega, _kept(_rotations(omega, trained).floor()), scale
            ),
            "You count whole rotations only. γ grows linearly with the number of rotations, fractions included.",
        ),
        Mistake(
            "geometric_mix",
            lambda omega, scale, trained: omega * scale ** (_kept(_rotations(omega, trained)) - 1),
            "Between 1 and 32 rotations you mix the logarithms of the frequencies. Mix the frequencies: "
            "γ ω + (1 - γ) ω / scale.",
        ),
        Mistake(
            "scale_in_the_rotations",
            lambda omega, scale, trained: _mixed(
                omega, _kept(_rotations(omega, trained) / scale), scale
            ),
            "You count the rotations of the divided frequencies. Count those of ω, within the training length.",
        ),
        Mistake(
            "omega_forgotten",
            lambda omega, scale, trained: (
                (kept := _kept(_rotations(omega, trained))) * omega + (1 - kept) / scale
            ),
            "In the second term ω is missing: (1 - γ) ω / scale.",
        ),
        Mistake(
            "threshold_in_the_middle",
            lambda omega, scale, trained: torch.where(
                _rotations(omega, trained) > 16.5, omega, omega / scale
            ),
            "Right for pairs with at most one rotation and with at least 32. Between them the frequency is a mix.",
        ),
    ),
    hints=(
        "How many rotations does a pair with frequency ω, in radians per position, complete within `trained` positions?",
        "rotations = trained * omega / (2 * math.pi). A linear function of it is 0 at 1 and 1 at 32; clamp it to "
        "0 … 1 for the pairs outside.",
        "kept = ((rotations - 1) / 31).clamp(0, 1), then kept * omega + (1 - kept) * omega / scale.",
    ),
)
