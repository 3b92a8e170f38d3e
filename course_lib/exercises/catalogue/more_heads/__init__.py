"""The exercise of study 05a."""

EXERCISES = ("head_contributions",)
