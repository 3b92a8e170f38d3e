"""The exercises of study 10b, in the order in which the notebook sets them."""

EXERCISES = ("positive_features", "hunt_prefix")
