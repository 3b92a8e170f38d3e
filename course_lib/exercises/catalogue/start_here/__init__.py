"""The exercises of notebook 00, in the order in which the notebook sets them."""

EXERCISES = ("weighted_sum", "one_query", "hunt_weights")
