"""The exercises of notebook 08, in the order in which the notebook sets them."""

EXERCISES = (
    "hunt_validation",
    "hunt_cross",
    "teacher_forcing",
    "decode_mask",
    "decode_logits",
    "training_steps",
    "smoothed_targets",
    "cached_step",
)
