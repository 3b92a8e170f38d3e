"""The exercises of study 09b, in the order in which it sets them."""

EXERCISES = ("clipped_matches", "corpus_bleu")
