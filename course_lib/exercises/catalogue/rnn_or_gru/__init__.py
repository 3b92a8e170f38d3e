"""The exercise of study 03a."""

EXERCISES = ("final_states",)
