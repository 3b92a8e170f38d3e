"""The exercises of notebook 13, in the order in which the notebook sets them."""

EXERCISES = (
    "hunt_layout",
    "hunt_grouped",
    "hunt_template",
    "surprisal_in_bits",
    "low_rank_update",
)
