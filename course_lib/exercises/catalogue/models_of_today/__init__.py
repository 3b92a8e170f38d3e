"""The exercises of notebook 15, in the order in which the notebook sets them."""

EXERCISES = (
    "absorbed_scores",
    "expert_weights",
    "hunt_gated_norm",
    "hunt_visible",
    "delta_state",
)
