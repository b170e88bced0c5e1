"""Intervals of a paired difference: the mean of d_i = X_i − G_i, with the value X_i and the return G_i of trajectory i.

`t`, `normal`, `likelihood` and the bootstrap work as for any mean, with the values d_i. For finite samples, let rewards
be in [a, b], Γ = Σ_{t≤H} γ^{t−1}, so that returns are in [aΓ, bΓ], and let X be in [L, U] by the given bounds. Then

    L − bΓ ≤ d ≤ U − aΓ

is the range for `hoeffding` and `bernstein`, and each side of `betting`, `sequence`, `hcope` and `anderson` needs one
end of it. For `step-is` and `is` these four need no bound on ratios. Measure rewards from a, which keeps the
expectation:

    X' = aΓ + Σ_t γ^{t−1} c_t (r_t − a) ≥ aΓ,    hence    X' − G ≥ −(b − a)Γ

and aΓ + c_H (G − aΓ) instead of X' has the same floor. With rewards measured from b, G − X' has this floor
(`nonnegative`).
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from offpolicy.evaluation.bounds import Range
from offpolicy.evaluation.estimators import RETURNS, describe
from offpolicy.evaluation.plan import BEHAVIOR
from offpolicy.intervals import anderson, betting, hcope, sequence
from offpolicy.intervals.nonnegative import Lower, weighted_returns
from offpolicy.intervals.request import CONTRADICTED, Ends, Request, WithheldError
from offpolicy.intervals.sketch import BelowFloorError, Sketch
from offpolicy.logs.trajectories import Samples

#: Functions that bound the mean of values above a floor from below.
LOWERS: dict[str, Lower] = {
    "betting": betting.lower,
    "sequence": sequence.lower,
    "hcope": hcope.lower,
    "anderson": anderson.lower,
}


class PairedSamples(Samples):
    """Samples whose values are differences from the return of the same trajectory."""

    def values(self, policy: str, estimator: str, baseline: float | None = None) -> pl.DataFrame:
        """Return d_i of each trajectory: columns `episode` and `value`."""
        return self.less_returns(super().values(policy, estimator, baseline))

    def less_returns(self, found: pl.DataFrame) -> pl.DataFrame:
        """Subtract from each value the return of its trajectory."""
        returns = super().values(BEHAVIOR, RETURNS).rename({"value": "return"})
        both = found.join(returns, on="episode", how="left", maintain_order="left")
        return both.select("episode", pl.col("value") - pl.col("return"))


class PairedRequest(Request):
    """A request for an interval of a difference; `samples` are `PairedSamples`."""

    def own_ends(self) -> Callable[[Request], Ends] | None:
        """Return the function that finds the ends of a difference, if it is not the method's own."""
        if self.terms.estimated and self.method not in ("t", "normal"):
            return _estimated
        if self.method in LOWERS:
            return _ends
        resampled = self.method.startswith("bootstrap") or self.method == "t-skew"
        return _no_values if resampled and describe(self.estimator).weighted else None

    @property
    def own_error(self) -> bool:
        """False, since the standard error is that of differences."""
        return False

    def possible(self) -> Range:
        """Return the least and the largest possible difference."""
        (lowest, highest), (least, most) = super().possible(), self.given().returns(self.terms)
        return lowest - most, highest - least

    def vacuous(self, low: float | None, high: float | None) -> str | None:
        """Return a remark if the interval contains every possible difference of two values."""
        if self.bounds is None or not self.bounds.hold(self.terms):
            return None
        least, most = self.bounds.returns(self.terms)
        if (low is None or low <= least - most) and (high is None or high >= most - least):
            return f"vacuous: it holds every possible difference, {least - most:g} to {most - least:g}"
        return None


def _ends(request: Request) -> Ends:
    low = high = None
    if request.wants_low:
        low, floor = _lowest(request, 1.0, 0)
    if request.wants_high:
        high, floor = _lowest(request, -1.0, 1)
        high = -high
    return Ends(low, high, {"floor": floor})


def _lowest(request: Request, sign: float, end: int) -> tuple[float, float]:
    """Return a lower bound on the mean of d or −d, and the floor; bounds on ratios are used if they are given."""
    given, by_rewards = request.given(), request.by_rewards
    sketch = _sketch(request, sign, end, by_rewards)
    if not (by_rewards and given.ratio is not None and request.method in ("betting", "sequence")):
        return sketch.floor + LOWERS[request.method](sketch, request.tail), sketch.floor
    other = _sketch(request, sign, end, by_rewards=False)
    two: Callable[..., float] = LOWERS[request.method]
    return sketch.floor + two(sketch, request.tail, other), sketch.floor


def _sketch(request: Request, sign: float, end: int, by_rewards: bool) -> Sketch:
    """Return the sketch of d_i, or of −d_i if `sign` is −1, above the least possible value."""
    samples, estimator, guess = request.samples, request.estimator, None
    assert isinstance(samples, PairedSamples)
    returns = request.given().returns(request.terms)
    floor = returns[0] - returns[1] if by_rewards else sign * request.range()[end]
    about = describe(estimator)
    if about.with_baseline and by_rewards:
        estimator, guess = about.with_baseline, request.given().rewards()[end]

    def make() -> Sketch:
        if about.weights_returns and by_rewards:
            found = samples.less_returns(weighted_returns(request, sign, returns[end]))
        else:
            found = samples.values(request.policy, estimator, guess)
        return Sketch.of(found["episode"], sign * found["value"].to_numpy(), floor)

    try:
        return samples.once((request.policy, estimator, guess, sign, floor), make)
    except BelowFloorError as error:
        value, limit = sign * error.value, sign * error.floor
        raise WithheldError(f"{CONTRADICTED}: a trajectory has the difference {value:g}, beyond {limit:g}") from None


def _estimated(request: Request) -> Ends:
    raise WithheldError(f"{request.method} of a difference takes π0 as known, and it was estimated: ask for t")


def _no_values(request: Request) -> Ends:
    raise WithheldError(
        f"{request.method} of a difference needs values of trajectories, and {request.estimator} has none: ask for t"
    )
