"""The exercise of study 02a."""

EXERCISES = ("without_scale",)
