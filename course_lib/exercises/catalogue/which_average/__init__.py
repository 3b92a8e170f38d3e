"""The exercises of study 01a, in the order in which it sets them."""

EXERCISES = (
    "epanechnikov_weights",
    "local_linear",
)
