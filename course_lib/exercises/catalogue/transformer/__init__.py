"""The exercises of notebook 08, in the order in which the notebook sets them."""

EXERCISES = (
    "hunt_validation",
    "teacher_forcing",
    "transformer_forward",
    "training_steps",
    "decode_mask",
    "cached_step",
)
