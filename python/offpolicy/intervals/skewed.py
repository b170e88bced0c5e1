"""Student's t corrected for skewness, asymptotic. If values are skewed to the right, their mean is most often too
small, and its standard error is smallest just then, so that an upper bound by `t` is too low. T = (θ̂ − θ)/SE is
transformed by

    g(T) = T + a T² + a² T³/3 + a/2 = ((1 + aT)³ − 1)/(3a) + a/2        a = γ/(3√n), γ the skewness of the values

g never decreases, and the law of g(T) differs from Student's t by terms of order 1/n, while that of T differs by terms
of order 1/√n. g is inverted exactly, which gives the interval

    [θ̂ − SE · max(q, g⁻¹(q)), θ̂ + SE · max(q, −g⁻¹(−q))]        g⁻¹(x) = (∛(1 + 3a (x − a/2)) − 1)/a

with the quantile q of Student's t. The correction moves an end only outwards: the skewness of a few trajectories is
itself uncertain, and for symmetric values an end moved inwards would cover less than `t`. SE, its degrees of freedom ν
and γ come from leaving out trajectories one by one (`leave_one_out`); heavy tails make ν smaller than n − 1. Symmetric
values without heavy tails give the interval of `t`. docs/results/intervals has the measured coverage.

Johnson, "Modified t tests and confidence intervals for asymmetrical populations" (JASA 1978); Hall, "On the removal of
skewness by transformation" (JRSS B 1992).
"""

from __future__ import annotations

import math

import numpy as np

from offpolicy.intervals.leave_one_out import spread
from offpolicy.intervals.normal import std_error, student_quantile
from offpolicy.intervals.request import Ends, Request
from offpolicy.intervals.rounding import rounding


def ends(request: Request) -> Ends:
    """Return the interval corrected for skewness."""
    error = std_error(request)
    found = spread(request)
    error = max(error, found.error) if error > 0 else 0.0
    quantile = student_quantile(request.quantile, found.degrees)
    a = found.skewness / (3 * math.sqrt(request.episodes))
    below, above = (error * max(quantile, end) for end in (inverse(quantile, a), -inverse(-quantile, a)))
    least = rounding(request)
    low = request.value - max(below, least) if request.wants_low else None
    high = request.value + max(above, least) if request.wants_high else None
    about = {"quantile": quantile, "std_error": error, "degrees": found.degrees, "skewness": found.skewness}
    return Ends(low, high, about)


def inverse(x: float, a: float) -> float:
    """Return g⁻¹(x), which is x for a = 0.

    >>> from offpolicy.intervals.skewed import inverse
    >>> inverse(2.0, 0.0), round(inverse(-2.0, 0.1), 3), round(inverse(2.0, 0.1), 3)
    (2.0, -2.725, 1.659)
    """
    if a == 0:
        return x
    u = 3 * a * (x - a / 2)
    root = math.expm1(math.log1p(u) / 3) if u > -0.5 else float(np.cbrt(1 + u)) - 1
    return root / a
