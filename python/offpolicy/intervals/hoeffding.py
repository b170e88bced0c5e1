"""Hoeffding's inequality, finite-sample. With values in [L, U], known beforehand:

    x̄ ∓ (U − L) √(ln(2/δ) / 2n)        one-sided: ln(1/δ)

Hoeffding, "Probability inequalities for sums of bounded random variables" (JASA 1963), theorem 2.
"""

from __future__ import annotations

import math

from offpolicy.intervals.request import Ends, Request


def ends(request: Request) -> Ends:
    """Return the interval of an average."""
    lowest, highest = request.range()
    half = (highest - lowest) * math.sqrt(math.log(1 / request.tail) / (2 * request.episodes))
    return request.around(request.value, half, lowest=lowest, highest=highest)
