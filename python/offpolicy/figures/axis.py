"""The ends of an axis, such that a few extreme numbers do not hide the others."""

from __future__ import annotations

import math
from collections.abc import Iterable

#: The axis extends beyond the middle half of all numbers by at most so many widths of that half.
REACH = 3.0
#: The empty part at each end, as a share of the axis.
MARGIN = 0.03
#: The largest end of an axis; the width of a wider axis would overflow.
FARTHEST = 5e307


def limits(numbers: Iterable[float | None], always: Iterable[float | None] = ()) -> tuple[float, float, bool]:
    """Return the ends of the axis, and whether a number lies beyond them; numbers in `always` never do.

    >>> limits([0.0, 1.0, 2.0, 3.0, 4.0, 1e6], always=[-50.0])
    (-51.62, 5.62, True)
    """
    must = _finite(always)
    every = sorted([*_finite(numbers), *must])
    if not every:
        return -1.0, 1.0, False
    lower, upper = every[len(every) // 4], every[-1 - len(every) // 4]
    reach = REACH * (upper - lower)
    low = _within(min([*must, *(number for number in every if number >= lower - reach)]))
    high = _within(max([*must, *(number for number in every if number <= upper + reach)]))
    margin = MARGIN * (high - low) or MARGIN * abs(high) or 1.0
    return low - margin, high + margin, every[0] < low or every[-1] > high


def _within(number: float) -> float:
    return min(max(number, -FARTHEST), FARTHEST)


def _finite(numbers: Iterable[float | None]) -> list[float]:
    return [number for number in numbers if number is not None and math.isfinite(number)]
