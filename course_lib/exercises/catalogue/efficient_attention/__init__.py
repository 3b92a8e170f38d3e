"""The exercises of notebook 10, in the order in which the notebook sets them."""

EXERCISES = (
    "hunt_online",
    "hunt_border",
    "within_blocks",
    "score_gradient",
    "linear_step",
)
