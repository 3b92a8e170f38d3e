"""The exercises of study 12a."""

EXERCISES = ("hunt_order", "hunt_pairs", "hunt_ends")
