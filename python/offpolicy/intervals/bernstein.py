"""The empirical Bernstein bound, finite-sample. With values in [L, U], known beforehand, and their variance s²:

    x̄ ∓ [ √(2 s² ln(4/δ) / n) + 7 (U − L) ln(4/δ) / (3 (n − 1)) ]        one-sided: ln(2/δ)

The variance is estimated too, so that half of δ is spent on the mean and half on the variance. This gives 2/δ for a
one-sided bound and 4/δ for two sides. The bound is far narrower than Hoeffding's if s is small compared with U − L.

Maurer & Pontil, "Empirical Bernstein bounds and sample variance penalization" (COLT 2009), theorem 4.
"""

from __future__ import annotations

import math

from offpolicy.intervals.normal import std_error
from offpolicy.intervals.request import Ends, Request


def ends(request: Request) -> Ends:
    """Return the interval of an average."""
    lowest, highest = request.range()
    error = std_error(request)
    half = half_width(error, highest - lowest, request.episodes, request.tail)
    return request.around(request.value, half, lowest=lowest, highest=highest, std_error=error)


def half_width(error: float, width: float, n: int, tail: float) -> float:
    """Return how far x̄ may be off on one side except with probability `tail`; `error` is s/√n and `width` is U − L."""
    log = math.log(2 / tail)
    return error * math.sqrt(2 * log) + 7 * width * log / (3 * (n - 1))
