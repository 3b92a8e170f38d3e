"""Experiments that notebooks run in a short version, with recorded results of the long version."""
