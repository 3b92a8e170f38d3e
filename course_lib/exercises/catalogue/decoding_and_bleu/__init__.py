"""The exercises of notebook 09, in the order in which the notebook sets them."""

EXERCISES = (
    "beam_step",
    "keep_top_p",
    "hunt_bleu",
    "search_outcomes",
)
