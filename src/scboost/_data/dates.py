"""Dates as numeric features: year, month, day, weekday, day of the year, hour and days since 1970, in UTC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scboost._arrays import Float64Array

LINEAR = "days since 1970"
PARTS = ("year", "month", "day", "weekday", "day of year", "hour", LINEAR)
"""The parts of a date: weekdays count from 0 for Monday; hours and days have a fraction."""
_HOUR, _DAY = 3.6e9, 8.64e10  # microseconds

Parts = tuple[str, ...]


@dataclass(frozen=True)
class Span:
    """Smallest and largest value of each part of a column of dates.

    Attributes
    ----------
    low, high : tuple of float
        In the order of ``PARTS``; infinite if there is no date.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    @classmethod
    def of(cls, values: npt.NDArray[np.datetime64]) -> Span:
        """Return the span of dates of any unit."""
        numbers = date_parts(values[~np.isnat(values)], PARTS)
        low, high = numbers.min(axis=0, initial=np.inf), numbers.max(axis=0, initial=-np.inf)
        return cls(tuple(low.tolist()), tuple(high.tolist()))

    @classmethod
    def merge(cls, spans: Sequence[Span]) -> Span:
        """Return the span of the dates of all partitions."""
        low, high = np.array([span.low for span in spans]), np.array([span.high for span in spans])
        return cls(tuple(low.min(axis=0).tolist()), tuple(high.max(axis=0).tolist()))

    @property
    def parts(self) -> Parts:
        """The parts that take more than one value, and always the linear time."""
        return tuple(
            part for part, low, high in zip(PARTS, self.low, self.high, strict=True) if low < high or part == LINEAR
        )


def date_parts(values: npt.NDArray[np.datetime64], parts: Sequence[str]) -> Float64Array:
    """Return parts of dates.

    Parameters
    ----------
    values : ndarray of datetime64 of shape (n,)
        Dates; NaT is missing.
    parts : sequence of str
        Names of parts.

    Returns
    -------
    ndarray of shape (n, n_parts)
        NaN where the date is missing.
    """
    instants = values.astype("datetime64[us]")
    days, months, years = (instants.astype(f"datetime64[{unit}]") for unit in "DMY")
    matrix = np.empty((len(values), len(parts)))
    found: npt.NDArray[np.number]
    for k, part in enumerate(parts):
        if part == "year":
            found = years.astype(np.int64) + 1970
        elif part == "month":
            found = (months - years.astype("datetime64[M]")).astype(np.int64) + 1
        elif part == "day":
            found = (days - months.astype("datetime64[D]")).astype(np.int64) + 1
        elif part == "weekday":
            found = (days.astype(np.int64) + 3) % 7  # 1970 began on a Thursday
        elif part == "day of year":
            found = (days - years.astype("datetime64[D]")).astype(np.int64) + 1
        elif part == "hour":
            found = (instants - days.astype("datetime64[us]")).astype(np.int64) / _HOUR
        else:
            found = instants.astype(np.int64) / _DAY
        matrix[:, k] = found
    matrix[np.isnat(values)] = np.nan
    return matrix
