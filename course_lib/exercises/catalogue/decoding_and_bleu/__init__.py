"""The exercises of notebook 09, in the order in which the notebook sets them."""

EXERCISES = (
    "hunt_temperature",
    "hunt_top_p",
    "hunt_beam",
    "hunt_bleu",
    "with_temperature",
    "keep_top_k",
    "keep_top_p",
    "best_finished",
    "beam_step",
    "clipped_matches",
    "brevity",
    "corpus_bleu",
)
