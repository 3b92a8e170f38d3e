"""The exercise of study 03b."""

EXERCISES = ("match_by_length",)
