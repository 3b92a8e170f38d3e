"""The exercises of study 11a, in the order in which the study sets them."""

EXERCISES = ("on_frontier", "power_law")
