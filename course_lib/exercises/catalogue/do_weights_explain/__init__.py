"""The exercises of study 04b, in the order in which it sets them."""

EXERCISES = ("hunt_effect",)
