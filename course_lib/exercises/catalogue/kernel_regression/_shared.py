"""Helpers of several exercises of notebook 01."""

import torch

from course_lib.data.series import nile_series, wave_series
from course_lib.exercises.exercise import Case
from course_lib.pooling import attention_pooling

QUERIES = torch.tensor([0.0, 2.0])
KEYS = torch.tensor([0.0, 1.0, 4.0])
VALUES = torch.tensor([1.0, 3.0, -2.0])
WAVE = wave_series(count=20, seed=3)
NILE = nile_series()
YEARS = torch.tensor([1870.5, 1898.75, 1925.5, 1960.25])  # never on a key, where |u| has no slope


def scaled_differences(queries, keys, bandwidth):
    return (queries[:, None] - keys[None, :]) / bandwidth


WEIGHT_CASES = (
    Case(queries=torch.tensor([0.5, 2.0]), keys=KEYS, bandwidth=0.7),
    Case(queries=torch.linspace(0, 5, 7), keys=WAVE.keys, bandwidth=0.4),
    Case(queries=YEARS, keys=NILE.keys, bandwidth=5.3),
)


def gaussian_pooling(queries, keys, values, bandwidth):
    return attention_pooling(queries, keys, values, bandwidth=bandwidth).output
