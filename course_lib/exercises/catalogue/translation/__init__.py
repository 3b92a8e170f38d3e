"""The exercises of notebook 12, in the order in which the notebook sets them."""

EXERCISES = (
    "encode_word",
    "batch_numbers",
    "hunt_accumulation",
    "process_losses",
    "hunt_resume",
)
