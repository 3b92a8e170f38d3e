"""The exercises of study 05c."""

EXERCISES = ("one_head", "causal_self_attention", "project_heads")
