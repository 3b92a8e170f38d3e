"""The exercises of study 04a, in the order in which it sets them."""

EXERCISES = ("layers_needed",)
