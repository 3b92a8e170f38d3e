"""The exercise of study 07a."""

EXERCISES = ("largest_ratio",)
