"""The exercises of notebook 07, in the order in which the notebook sets them."""

EXERCISES = (
    "hunt_norm_layer",
    "hunt_add_norm",
    "encoder_stack",
    "parallel_block",
)
