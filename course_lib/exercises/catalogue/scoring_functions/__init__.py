"""The exercises of notebook 02, in the order in which the notebook sets them."""

EXERCISES = (
    "hunt_width",
    "hunt_alike",
    "masked_attention",
    "projected_scores",
    "decoder_step_scores",
)
