"""Bounds from one side of values that are known to be above a floor; from the other side, of −values above −ceiling.

The value of a trajectory lies in [L, U] by the given bounds on ratios, rewards and models; see `offpolicy.bounds`. Of
`step-is` and `is` more is known. Let rewards be in [a, b], Γ = Σ_{t≤H} γ^{t−1}, and returns G in [aΓ, bΓ]. With the
constant a as guess, `dr-bsl` is

    Σ_t γ^{t−1} [c_{t−1} q_t + c_t (r_t − q_t)] = aΓ + Σ_{t≤H} γ^{t−1} c_t (r_t − a) ≥ aΓ        q_t = a Σ_{k≤H−t} γ^k

where an ended trajectory goes on with r = 0 and keeps c_T (sum by parts: γ^{t−1} q_t − γ^t q_{t+1} = a γ^{t−1}). Its
expectation is that of `step-is`, and its floor needs no bound on ratios; with the guess b it has the ceiling bΓ. And

    aΓ + c_H (G − aΓ) ≥ aΓ        bΓ − c_H (bΓ − G) ≤ bΓ

have the expectation of `is`, for E c_H = 1. So `betting`, `sequence`, `hcope` and `anderson` bound `step-is` and `is`
by these values, given bounds on rewards alone. Since they use that weights have mean 1, the estimate itself may be
outside of the interval.

They hold even where the new policy takes actions that the old one never does. E c_t < 1 there; but the lower bound is
made of Σ γ^{t−1} c_t (r_t − a), or c_H (G − aΓ), which has nothing negative in it and can only lose, and the upper one
of Σ γ^{t−1} c_t (b − r_t), or c_H (bΓ − G), likewise.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from offpolicy.intervals.request import CONTRADICTED, Ends, Request, WithheldError
from offpolicy.intervals.sketch import SLACK, BelowFloorError, Sketch

#: Estimators that bounds on rewards alone bound.
BY_REWARDS = ("is", "step-is")
#: A lower bound for the mean of x, which holds with probability 1 − δ, from a sketch and δ.
Lower = Callable[[Sketch, float], float]


def ends_by(request: Request, lower: Lower) -> Ends:
    """Both ends by a lower bound: that of the values, and that of their opposites."""
    lowest, highest = _range(request)
    low = high = None
    if request.wants_low:
        sketch = sketch_above(request)
        low = sketch.floor + lower(sketch, request.tail)
    if request.wants_high:
        sketch = sketch_below(request)
        high = -(sketch.floor + lower(sketch, request.tail))
    return Ends(low, high, {"lowest": lowest, "highest": highest})


def sketch_above(request: Request) -> Sketch:
    """The values above the lowest possible one."""
    return _sketch(request, 1.0, 0)


def sketch_below(request: Request) -> Sketch:
    """The opposites of the values above that of the highest possible one."""
    return _sketch(request, -1.0, 1)


def _range(request: Request) -> tuple[float, float]:
    return request.given().returns(request.terms) if request.estimator in BY_REWARDS else request.range()


def _sketch(request: Request, sign: float, end: int) -> Sketch:
    """Reads the log once and keeps the sketch, n values being in memory only meanwhile."""
    limit = _range(request)[end]
    estimator, guess, floor = request.estimator, None, sign * limit
    if estimator == "step-is":
        estimator, guess = "dr-bsl", request.given().rewards()[end]

    def make() -> Sketch:
        if estimator == "is":
            found = _returns(request, sign, limit)
        else:
            found = request.samples.values(request.policy, estimator, guess)
        return Sketch.of(found["episode"], sign * found["value"].to_numpy(), floor)

    try:
        return request.samples.once((request.policy, estimator, guess, sign, floor), make)
    except BelowFloorError as error:
        value, limit = sign * error.value, sign * error.floor
        raise WithheldError(f"{CONTRADICTED}: a trajectory has the value {value:g}, beyond {limit:g}") from None


def _returns(request: Request, sign: float, limit: float) -> pl.DataFrame:
    """limit + c_H (G − limit) of each trajectory. No weight makes more of what rounding leaves of a difference of 0."""
    blocks, slack = [], SLACK * abs(limit)
    for steps in request.samples.steps(request.policy, "reward"):
        returns = np.zeros(len(steps.episodes))
        for reward in steps.columns["reward"].T[::-1]:
            returns = reward + request.terms.discount * returns
        above = sign * (returns - limit)
        if above.min() < -slack:
            raise BelowFloorError(sign * float(returns[above.argmin()]), sign * limit)
        above[above <= slack] = 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            values = limit + sign * steps.c[:, -1] * above
        if not np.isfinite(values).all():
            raise WithheldError("the product of so many ratios is beyond the range of f64")
        blocks.append(pl.DataFrame({"episode": steps.episodes, "value": values}))
    return pl.concat(blocks, how="vertical_relaxed")
