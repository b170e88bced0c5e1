"""Lower bounds, by which candidates are compared, and how often they hold.

    V − C σ                        σ the standard error: below the true value with probability Φ(C), if V is normal
    the bound of an interval       from below alone, of level 1−δ

or the same of a gain, V − V(π0), in the place of V. The best of m bounds is wrong more often than one bound is. By
Bonferroni all m hold at once with probability

    at least max(0, 1 − m δ),    δ = Φ(−C) for V − Cσ

whatever the candidates have in common, where each holds with probability 1 − δ. A finite-sample bound does. One of the
normal law does in the limit of many trajectories: docs/improvement has how often it did in finite samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

from offpolicy import intervals
from offpolicy._util.scalars import at_least_0, is_number
from offpolicy.errors import words
from offpolicy.errors.kinds.arguments import bad_value, give_one, interval_not_named
from offpolicy.errors.phrase import phrase
from offpolicy.evaluation.bounds import Bounds
from offpolicy.evaluation.difference import Difference
from offpolicy.evaluation.estimate import Estimate
from offpolicy.intervals import Interval
from offpolicy.intervals.rounding import no_spread

CAUTION, CONFIDENCE = 1.0, 0.95
#: Two ways to ask for a lower bound.
NOT_BOTH = phrase(
    "{caution}, the C of V − Cσ, or {interval}, not both",
    caution=words.argument("caution"),
    interval=words.argument("interval"),
)
NORMAL = NormalDist()


@dataclass(frozen=True)
class LowerBound:
    """V − Cσ where `caution` is C, otherwise the lower bound by the interval `method`; δ is how often it may fail.

    `symbol` is what a table calls the quantity that is bounded: the value V, or the gain.

    >>> from offpolicy.drivers.lower_bound import LowerBound
    >>> bound = LowerBound.chosen(caution=2.0)
    >>> print(bound, round(bound.confidence, 4), round(bound.corrected(10), 4))
    V - 2σ 0.9772 0.7725
    """

    caution: float | None
    method: str | None
    delta: float
    bounds: Bounds | None = None
    symbol: str = "V"

    @classmethod
    def chosen(
        cls,
        caution: float | None = None,
        method: str | None = None,
        confidence: float | None = None,
        bounds: Bounds | None = None,
        symbol: str = "V",
    ) -> LowerBound:
        """The bound that the arguments of `improve` ask for."""
        if method is None:
            if confidence is not None or bounds is not None:
                what = "bounds are" if confidence is None else "confidence is"
                raise interval_not_named(what=what)
            c = CAUTION if caution is None else at_least_0("caution", caution)
            return cls(c, None, NORMAL.cdf(-c), symbol=symbol)
        if caution is not None:
            raise give_one(choices=NOT_BOTH)
        level = CONFIDENCE if confidence is None else confidence
        if not (is_number(level) and 0.5 < level < 1):
            raise bad_value(name="confidence of a lower bound", expected="above 0.5 and below 1", found=repr(level))
        intervals.check(method, level, "lower")
        return cls(None, method, 1 - level, bounds, symbol)

    def __str__(self) -> str:
        """How a table calls it."""
        if self.caution is None:
            return f"{self.confidence:.4g} {self.method} bound"
        return f"{self.symbol} - {self.caution:g}σ"

    @property
    def confidence(self) -> float:
        """How often one bound alone holds."""
        return 1 - self.delta

    def corrected(self, candidates: int) -> float:
        """How often, at least, the bounds of all candidates hold at once."""
        return max(0.0, 1 - candidates * self.delta)

    def of(self, estimate: Estimate | Difference) -> Interval:
        """The bound as `low` of an interval without an upper end; None there, with a `reason`, where it has none."""
        if self.caution is None:
            return estimate.interval(self.confidence, self.method, self.bounds, side="lower")
        value, error = estimate.value, estimate.std_error
        without = Interval(None, None, str(self), "asymptotic", self.confidence, side="lower")
        if estimate.withheld is not None or value is None or error is None:
            return replace(without, reason=estimate.withheld or "a single trajectory has no standard error")
        if self.caution > 0 and (unknown := no_spread(estimate)) is not None:
            return replace(without, reason=unknown)
        low = value - self.caution * error
        if not math.isfinite(low):
            return replace(without, reason=f"{self} is beyond the range of f64")
        return replace(without, low=low, assumptions={"caution": self.caution, "std_error": error})
