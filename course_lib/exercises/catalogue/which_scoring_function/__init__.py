"""The exercises of study 02b, in the order in which the study sets them."""

EXERCISES = ("gaussian_scores",)
