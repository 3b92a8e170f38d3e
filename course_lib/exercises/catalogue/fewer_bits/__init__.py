"""The exercises of study 13a, in the order in which it sets them."""

EXERCISES = ("dequantise",)
