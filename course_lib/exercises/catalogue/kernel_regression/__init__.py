"""The exercises of notebook 01, in the order in which the notebook sets them."""

EXERCISES = (
    "hunt_fit",
    "hunt_forecast",
    "gaussian_weights",
    "batched_regression",
    "leave_one_out",
)
