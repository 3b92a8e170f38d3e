"""The exercise of study 03c."""

EXERCISES = ("attention_share",)
