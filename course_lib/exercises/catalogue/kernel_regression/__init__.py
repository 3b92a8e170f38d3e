"""The exercises of notebook 01, in the order in which the notebook sets them."""

EXERCISES = (
    "hunt_fit",
    "hunt_forecast",
    "gaussian_weights",
    "batched_regression",
    "epanechnikov_weights",
    "leave_one_out",
    "local_linear",
)
