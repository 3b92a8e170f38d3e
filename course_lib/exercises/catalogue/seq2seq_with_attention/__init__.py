"""The exercises of notebook 03, in the order in which the notebook sets them."""

EXERCISES = (
    "hunt_context",
    "hunt_padding",
    "log_probability",
    "greedy_decode",
    "bahdanau_decoder",
    "luong_decoder",
)
