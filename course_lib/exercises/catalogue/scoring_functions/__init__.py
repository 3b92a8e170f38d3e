"""The exercises of notebook 02, in the order in which the notebook sets them."""

EXERCISES = (
    "hunt_width",
    "hunt_alike",
    "masked_attention",
    "causal",
    "additive_scores",
)
