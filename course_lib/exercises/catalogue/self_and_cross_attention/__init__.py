"""The exercises of notebook 04, in the order in which the notebook sets them."""

EXERCISES = (
    "hunt_dropout",
    "decoder_mask",
    "from_torch_masks",
    "cross_attention",
)
