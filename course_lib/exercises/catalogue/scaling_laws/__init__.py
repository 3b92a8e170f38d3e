"""The exercises of notebook 11, in the order in which the notebook sets them."""

EXERCISES = (
    "hunt_training_flops",
    "hunt_bits_per_byte",
    "llama_parameters",
    "lifetime_flops",
)
