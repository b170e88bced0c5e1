"""Confidence intervals: each with its kind, what it assumed, and a reason where it cannot be had.

normal, t    x̄ ∓ q_{1−δ/2} · SE                      asymptotic
hoeffding    x̄ ∓ (U−L) √(ln(2/δ) / 2n)               finite-sample, for bounds that are given, never seen
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

from offpolicy import _core
from offpolicy.bounds import Bounds, MissingBoundError, Terms
from offpolicy.errors import UsageError
from offpolicy.estimators import WEIGHTED

#: Degrees of freedom beyond which the expansion around the normal is exact to 1e-15.
NEARLY_NORMAL = 100_000
METHODS = {"normal": "asymptotic", "t": "asymptotic", "hoeffding": "finite-sample"}


@dataclass(frozen=True)
class Interval:
    """A confidence interval; `low` and `high` are None where it was withheld, and `reason` says why.

    >>> import offpolicy as op
    >>> interval = op.evaluate(op.demo_log(), discount=0.9)["dr"].interval(confidence=0.9, method="normal")
    >>> interval.kind, interval.low < op.demo_value() < interval.high
    ('asymptotic', True)
    """

    low: float | None
    high: float | None
    method: str
    kind: str
    confidence: float
    assumptions: dict[str, Any] = field(default_factory=dict)
    reason: str | None = None


def check(method: str, confidence: float) -> None:
    """Refuses an unknown method and a level outside (0, 1)."""
    if method not in METHODS:
        raise UsageError(f"no interval {method!r}; there are {', '.join(METHODS)}")
    if not (0 < confidence < 1 and 0.5 + confidence / 2 < 1):
        raise UsageError(f"confidence must be between 0 and 1, not {confidence}")


def interval(
    estimator: str,
    value: float | None,
    std_error: float | None,
    episodes: int,
    terms: Terms,
    *,
    confidence: float,
    method: str,
    bounds: Bounds | None,
    withheld: str | None,
) -> Interval:
    """The interval of an estimate, or the reason why there is none."""
    check(method, confidence)
    kind = METHODS[method]

    def refuse(why: str) -> Interval:
        return Interval(None, None, method, kind, confidence, reason=why)

    def around(center: float, half: float, assumptions: dict[str, Any], reason: str | None = None) -> Interval:
        low, high = center - half, center + half
        if not (math.isfinite(low) and math.isfinite(high)):
            return refuse("its ends are beyond the range of f64")
        return Interval(low, high, method, kind, confidence, assumptions, reason)

    if withheld is not None or value is None:
        return refuse(withheld or "the estimate has no value")
    if method != "hoeffding":
        if std_error is None:
            alone = "a single trajectory has no standard error"
            return refuse(alone if episodes == 1 else f"the standard error of {estimator} needs passes=2")
        quantile = _quantile(method, confidence, episodes)
        half, assumptions = quantile * std_error, {"quantile": quantile, "std_error": std_error}
        return around(value, half, assumptions)
    if estimator in WEIGHTED:
        return refuse(f"{method} holds for means of independent values; {estimator} is a ratio of sums")
    if bounds is None:
        return refuse("hoeffding needs bounds=Bounds(...): ranges are given, never taken from the sample")
    if terms.longest_seen and not bounds.fixed_length:
        return refuse("hoeffding needs horizon=: the longest episode of the sample bounds nothing")
    try:
        lowest, highest = bounds.range(estimator, terms)
    except MissingBoundError as error:
        return refuse(str(error))
    half = (highest - lowest) * math.sqrt(math.log(2 / (1 - confidence)) / (2 * episodes))
    assumptions = {"lowest": lowest, "highest": highest}
    least, most = bounds.returns(terms)
    vacuous = value - half <= least and value + half >= most
    reason = f"vacuous: it holds every possible return, {least:g} to {most:g}" if vacuous else None
    return around(value, half, assumptions, reason)


def _quantile(method: str, confidence: float, episodes: int) -> float:
    p, nu = 0.5 + confidence / 2, episodes - 1
    if method == "t" and nu <= NEARLY_NORMAL:
        return _core.student_t_quantile(p, nu)
    z = NormalDist().inv_cdf(p)
    if method == "normal":
        return z
    # Cornish & Fisher's expansion of Student's t around the normal.
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / nu + second / nu**2 + third / nu**3
