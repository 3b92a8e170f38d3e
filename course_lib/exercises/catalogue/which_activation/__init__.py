"""The exercise of study 07b."""

EXERCISES = ("swiglu",)
