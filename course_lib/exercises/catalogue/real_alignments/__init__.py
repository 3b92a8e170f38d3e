"""The exercise of study 12b."""

EXERCISES = ("word_weights",)
