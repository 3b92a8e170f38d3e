"""The exercises of notebook 14, in the order in which the notebook sets them."""

EXERCISES = (
    "direct_attribution",
    "induction_scores",
    "hunt_heads_write",
    "hunt_mean_ablated",
    "lens_rank",
)
