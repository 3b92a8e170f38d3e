"""The exercise of study 14a."""

EXERCISES = ("copying_score",)
