"""The exercise of study 08a."""

EXERCISES = ("hunt_cross",)
