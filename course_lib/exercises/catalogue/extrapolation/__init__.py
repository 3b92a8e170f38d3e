"""The exercises of study 06a, in the order in which it sets them."""

EXERCISES = ("trained_offsets",)
