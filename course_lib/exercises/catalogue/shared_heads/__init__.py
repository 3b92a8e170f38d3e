"""The exercise of study 05b."""

EXERCISES = ("pool_kv_heads",)
