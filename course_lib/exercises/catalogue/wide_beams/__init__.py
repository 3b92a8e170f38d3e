"""The exercises of study 09a, in the order in which it sets them."""

EXERCISES = ("brevity", "hunt_top_p")
