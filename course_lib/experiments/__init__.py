"""Experiments that a notebook runs in small and a command runs at length, with their recorded results."""
