"""The exercises of study 05c."""

EXERCISES = ("one_head", "project_heads")
