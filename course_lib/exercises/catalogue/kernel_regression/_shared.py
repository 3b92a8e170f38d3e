"""Helpers of several exercises of notebook 01 and of study 01a."""

import torch

from course_lib.data.series import nile_series, wave_series
from course_lib.topics.pooling import attention_pooling

QUERIES = torch.tensor([0.0, 2.0])
KEYS = torch.tensor([0.0, 1.0, 4.0])
VALUES = torch.tensor([1.0, 3.0, -2.0])
WAVE = wave_series(count=20, seed=3)
NILE = nile_series()


def gaussian_pooling(queries, keys, values, bandwidth):
    return attention_pooling(queries, keys, values, bandwidth=bandwidth).output
