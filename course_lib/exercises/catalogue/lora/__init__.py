"""The exercises of study 13c, in the order in which it sets them."""

EXERCISES = ("answer_loss",)
