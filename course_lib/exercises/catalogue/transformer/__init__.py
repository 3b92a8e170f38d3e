"""The exercises of notebook 08, in the order in which the notebook sets them."""

EXERCISES = (
    "hunt_peek",
    "hunt_evaluation",
    "hunt_start",
    "hunt_turned",
    "embed",
    "teacher_forcing",
    "token_loss",
    "smoothed_targets",
    "warmup_rates",
    "accumulated_losses",
    "steps_after",
    "cached_step",
)
