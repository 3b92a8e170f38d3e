"""The exercises of study 06b, in the order in which it sets them."""

EXERCISES = ("yarn",)
