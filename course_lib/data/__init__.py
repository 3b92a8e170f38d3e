"""Data to learn from: small, offline, the same on every machine."""

from course_lib.data.series import Series, nile_series, wave, wave_series

__all__ = ["Series", "nile_series", "wave", "wave_series"]
