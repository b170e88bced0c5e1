"""The empirical Bernstein bound, finite-sample. With values in [L, U], known beforehand, and their variance s²:

    x̄ ∓ [ √(2 s² ln(4/δ) / n) + 7 (U − L) ln(4/δ) / (3 (n − 1)) ]        from one side ln(2/δ)

Half of the logarithm's δ goes to the mean and half to the variance, which is only estimated: hence 2/δ from one
side, and 4/δ from two. Far narrower than Hoeffding's bound where s is small beside U − L.

Maurer & Pontil, "Empirical Bernstein bounds and sample variance penalization" (COLT 2009), theorem 4.
"""

from __future__ import annotations

import math

from offpolicy.intervals.normal import std_error
from offpolicy.intervals.request import Ends, Request


def ends(request: Request) -> Ends:
    """The interval of an average."""
    lowest, highest = request.range()
    error = std_error(request)
    half = half_width(error, highest - lowest, request.episodes, request.tail)
    return request.around(request.value, half, lowest=lowest, highest=highest, std_error=error)


def half_width(error: float, width: float, n: int, tail: float) -> float:
    """How far x̄ may be off on one side with probability `tail`; `error` is s/√n and `width` U − L."""
    log = math.log(2 / tail)
    return error * math.sqrt(2 * log) + 7 * width * log / (3 * (n - 1))
