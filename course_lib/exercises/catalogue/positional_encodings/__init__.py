"""The exercises of notebook 06, in the order in which the notebook sets them."""

EXERCISES = ("hunt_rope_attention", "hunt_half", "hunt_generation", "shift", "alibi")
