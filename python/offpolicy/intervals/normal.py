"""Intervals by the limit law of the estimate, asymptotic:

    x̄ ∓ q · SE        q the quantile 1 − δ/2 of the normal law, or of Student's t with n − 1 degrees
                          of freedom; G − 1 with G clusters, and fewer with an estimated π0 (`std_errors`)

For the weighted estimators, SE comes from influence functions and is too small in a small sample. There `t` leaves out
trajectories one by one (`leave_one_out`), which gives another SE and its degrees of freedom. The larger SE is taken;
`factor` is its ratio to the first one. An interval narrower than the rounding of its own arithmetic is widened to that
rounding (δ of `rounding`).
"""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist

from offpolicy import _core
from offpolicy._util import words
from offpolicy._util.phrase import phrase
from offpolicy.intervals import leave_one_out
from offpolicy.intervals.request import Ends, Request, WithheldError
from offpolicy.intervals.rounding import rounding

#: Degrees of freedom beyond which the expansion around the normal is exact to 1e-15.
NEARLY_NORMAL = 100_000


def normal(request: Request) -> Ends:
    """Return the interval by the normal law."""
    return _by_quantile(request, NormalDist().inv_cdf(request.quantile))


def student(request: Request) -> Ends:
    """Return the interval by Student's t."""
    error = std_error(request)
    if error > 0 and leave_one_out.needed(request):
        found = leave_one_out.spread(request)
        quantile, factor = student_quantile(request.quantile, found.degrees), max(found.error / error, 1.0)
        ends = _by_quantile(replace(request, std_error=factor * error), quantile)
        return replace(ends, assumptions=ends.assumptions | {"degrees": found.degrees, "factor": factor})
    degrees = request.episodes - 1 if request.degrees is None else request.degrees
    return _by_quantile(request, student_quantile(request.quantile, degrees))


def std_error(request: Request) -> float:
    """Return the standard error, and withhold the interval if there is none."""
    if request.std_error is None:
        alone = "a single trajectory has no standard error"
        again = phrase("the standard error of {name} needs {passes}", name=request.estimator, passes=words.TWO_PASSES)
        raise WithheldError(alone if request.episodes == 1 else again)
    return request.std_error


def student_quantile(p: float, degrees: float) -> float:
    """Return the quantile of Student's t, for many degrees by Cornish & Fisher's expansion around the normal.

    >>> from offpolicy.intervals.normal import student_quantile
    >>> round(student_quantile(0.975, 10), 9)
    2.228138852
    """
    if degrees <= NEARLY_NORMAL:
        return _core.student_t_quantile(p, degrees)
    z = NormalDist().inv_cdf(p)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / degrees + second / degrees**2 + third / degrees**3


def _by_quantile(request: Request, quantile: float) -> Ends:
    error, delta = std_error(request), rounding(request)
    half = quantile * error
    if 0 <= half < delta:
        return request.around(request.value, delta, quantile=quantile, std_error=error, rounding=delta)
    return request.around(request.value, half, quantile=quantile, std_error=error)
