"""The exercises of notebook 03, in the order in which the notebook sets them."""

EXERCISES = (
    "final_states",
    "hunt_context",
    "hunt_padding",
    "attention_share",
    "forced_loss",
    "greedy_decode",
    "bahdanau_decoder",
    "luong_decoder",
)
