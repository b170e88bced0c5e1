"""A bound on how far rounding can move an estimate, and a test for samples without spread beyond that.

The value of a trajectory with H steps, computed in f64 with ε = 2⁻⁵², is within

    δ = (2H + 8) ε · max(|least|, |largest|, |value|)        over the values of the trajectories, and the estimate

of its exact value for the numbers in the log. ρ_{1:t} takes t quotients and t products, and γ^{t−1} up to t products
more. Each of these operations has a relative error of at most ε/2, which makes 3/2 H ε in all. A term takes a few more
operations, and the sum of H terms, in eight lanes, takes H/8 + 3 additions. The mean over trajectories is summed
exactly and rounded once. For H up to 1000, δ is below 5e-13 of the largest value. If terms of both signs cancel within
a trajectory, more can be lost than its value shows. For a ratio of sums, whose trajectories have no values of their
own, only |value| is known.

Two values that differ by no more than 2δ may be the same number: a sample in which all are that close says nothing
about the error of its mean.
"""

from __future__ import annotations

import math
from typing import Protocol

from offpolicy._util import words
from offpolicy._util.phrase import phrase
from offpolicy.evaluation.bounds import Range, Terms
from offpolicy.evaluation.estimators import describe

EPSILON: float = 2.0**-52


class Estimated(Protocol):
    """An estimate, or the request for an interval of it."""

    @property
    def estimator(self) -> str: ...  # noqa: D102
    @property
    def value(self) -> float | None: ...  # noqa: D102
    @property
    def std_error(self) -> float | None: ...  # noqa: D102
    @property
    def episodes(self) -> int: ...  # noqa: D102
    @property
    def degrees(self) -> int | None: ...  # noqa: D102
    @property
    def extremes(self) -> Range | None: ...  # noqa: D102
    @property
    def terms(self) -> Terms: ...  # noqa: D102


def rounding(estimate: Estimated) -> float:
    """Return δ, a bound on how far rounding can move the estimate and the values of its trajectories."""
    known = (estimate.value or 0.0, *(estimate.extremes or ()))
    largest = max((abs(x) for x in known if math.isfinite(x)), default=0.0)
    return (2 * estimate.terms.horizon + 8) * EPSILON * largest


def no_spread(estimate: Estimated) -> str | None:
    """Return why the sample does not tell the error of an estimate, or None if its trajectories differ."""
    if estimate.std_error is None:
        return None
    spread = estimate.std_error * math.sqrt(estimate.episodes)
    if estimate.extremes is not None:
        least, largest = estimate.extremes
        # With clusters or an estimated π0 the error is not that of the values alone.
        spread = largest - least if estimate.degrees is None else min(spread, largest - least)
    if not spread <= 2 * rounding(estimate):
        return None
    name, about = estimate.estimator, describe(estimate.estimator)
    moved = f"no trajectory moves {name}" if about.weighted else f"no two trajectories differ in {name}"
    reason = f"{moved} by more than rounding, so that nothing in the log tells its error"
    if about.model == "value":
        return f"{reason}, and no spread of {name} would tell the bias of its model: ask for dr"
    another = about.weighted or (about.model == "transitions" and not estimate.terms.transition_ratio)
    what = "step-is with an interval" if another else "an interval"
    return phrase(
        "{reason}: ask for {what} for finite samples, such as betting with {bounds}",
        reason=reason,
        what=what,
        bounds=words.bounds("reward"),
    )
