"""The exercise of study 02b."""

EXERCISES = ("gaussian_scores",)
