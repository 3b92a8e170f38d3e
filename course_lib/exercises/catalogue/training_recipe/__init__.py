"""The exercise of study 08b."""

EXERCISES = ("smoothed_targets",)
