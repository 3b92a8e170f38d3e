"""The exercises of notebook 07, in the order in which the notebook sets them."""

EXERCISES = (
    "hunt_norm_layer",
    "hunt_new_norm",
    "hunt_switches",
    "layer_norm",
    "feed_forward",
    "add_and_norm",
    "encoder_stack",
    "decoder_block",
)
