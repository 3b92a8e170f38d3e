"""The exercises of notebook 02, in the order in which the notebook sets them."""

EXERCISES = (
    "hunt_width",
    "hunt_alike",
    "gaussian_scores",
    "additive_scores",
    "masked_attention",
    "causal",
    "projected_scores",
)
