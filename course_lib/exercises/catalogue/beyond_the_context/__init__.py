"""The exercises of study 13b, in the order in which it sets them."""

EXERCISES = ("hunt_decode", "hunt_batch")
