"""Experiments that notebooks run in a short version, each with a table of the runs of the long version."""
