"""The exercises of notebook 05, in the order in which the notebook sets them."""

EXERCISES = (
    "hunt_five",
    "hunt_mask_axes",
    "hunt_cache",
    "decode_step",
)
