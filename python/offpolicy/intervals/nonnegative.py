"""Lower bounds for values above a known floor, and upper bounds by the same for −values above −ceiling.

The value of a trajectory lies in [L, U] by the given bounds on ratios, rewards and models
(`offpolicy.evaluation.bounds`). For `step-is` and `is` more is known. Let rewards be in [a, b], Γ = Σ_{t≤H} γ^{t−1},
and returns G in [aΓ, bΓ]. With the constant a as baseline, `dr-bsl` is

    Σ_t γ^{t−1} [c_{t−1} q_t + c_t (r_t − q_t)] = aΓ + Σ_{t≤H} γ^{t−1} c_t (r_t − a) ≥ aΓ        q_t = a Σ_{k≤H−t} γ^k

where an ended trajectory goes on with r = 0 and keeps c_T (summation by parts: γ^{t−1} q_t − γ^t q_{t+1} = a γ^{t−1}).
Its expectation is that of `step-is`, and its floor needs no bound on ratios; with the baseline b it has the ceiling bΓ.
The values

    aΓ + c_H (G − aΓ) ≥ aΓ        bΓ − c_H (bΓ − G) ≤ bΓ

have the expectation of `is`, since E c_H = 1. With these values, `betting`, `sequence`, `hcope` and `anderson` bound
`step-is` and `is` given bounds on rewards alone. Since they use that weights have mean 1, the estimate itself may lie
outside the interval.

The bounds hold even if the new policy takes actions that the old one never does. Then E c_t < 1; but the lower bound is
computed from Σ γ^{t−1} c_t (r_t − a), or c_H (G − aΓ), whose terms are never negative, so that missing actions can only
lower it. The upper bound is computed from Σ γ^{t−1} c_t (b − r_t), or c_H (bΓ − G), to which the same applies.

With a bound on ratios too, the values of `step-is` and `is` themselves lie in [L, U], and their distances from L and U
are a second pair of variables. If rewards are rare, they lack the noise of the weights that the first pair has:
Σ γ^{t−1} c_t (b − r_t) is then nearly b Σ γ^{t−1} c_t. `betting` and `sequence` use both pairs. The second pair has the
right mean only if E c_t = 1. That is no further assumption: an action that only the new policy takes has the ratio
π1/π0 = ∞, so that a bound on ratios excludes it. If this is not certain, give bounds on rewards alone; then the
paragraph above applies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from offpolicy.evaluation.estimators import describe
from offpolicy.intervals.request import CONTRADICTED, Ends, Request, WithheldError
from offpolicy.intervals.sketch import SLACK, BelowFloorError, Sketch

#: For each side, the sign of the values and the index of the end of the range that becomes their floor.
SIDES = {"lower": (1.0, 0), "upper": (-1.0, 1)}
#: A function of a sketch, δ and perhaps other sketches that returns a lower bound on the mean of x at level 1 − δ.
Lower = Callable[..., float]


def ends_by(request: Request, lower: Lower, by_ratios: bool = False) -> Ends:
    """Return both ends by a lower bound: that of the values, and that of their negatives.

    With `by_ratios`, the method also gets the sketch of the second variable if there is one.
    """
    lowest, highest = _range(request)
    assumed: dict[str, Any] = {"lowest": lowest, "highest": highest}

    def bound(side: str) -> float:
        first, others = sketch_of(request, side), []
        if by_ratios and _differs_by_ratios(request, side):
            others.append(sketch_of(request, side, by="ratios"))
            assumed["ratio"] = request.given().ratio
        return first.floor + lower(first, request.tail, *others)

    low = bound("lower") if request.wants_low else None
    high = -bound("upper") if request.wants_high else None
    return Ends(low, high, assumed)


def sketch_of(request: Request, side: str, by: str = "rewards") -> Sketch:
    """Return the sketch of the values above their floor, or for the upper side of the negatives above −ceiling.

    For `step-is` and `is`, `by` chooses the variable whose floor follows from bounds on rewards, or on ratios too.
    The log is read once and the sketch is kept; n values are in memory only while it is made.
    """
    sign, end = SIDES[side]
    limit = (request.range() if by == "ratios" else _range(request))[end]
    estimator, guess, floor = request.estimator, None, sign * limit
    about = describe(estimator)
    if about.with_baseline and by == "rewards":
        estimator, guess = about.with_baseline, request.given().rewards()[end]

    def make() -> Sketch:
        if request.by_rewards and about.weights_returns and by == "rewards":
            found = weighted_returns(request, sign, limit)
        else:
            found = request.samples.values(request.policy, estimator, guess)
        return Sketch.of(found["episode"], sign * found["value"].to_numpy(), floor)

    try:
        return request.samples.once((request.policy, estimator, guess, sign, floor, by), make)
    except BelowFloorError as error:
        value, limit = sign * error.value, sign * error.floor
        raise WithheldError(f"{CONTRADICTED}: a trajectory has the value {value:g}, beyond {limit:g}") from None


def _range(request: Request) -> tuple[float, float]:
    return request.given().returns(request.terms) if request.by_rewards else request.range()


def _differs_by_ratios(request: Request, side: str) -> bool:
    """Return whether there is a second variable: ratios are bounded, and the baseline of the first one is not 0.

    With the baseline 0 the first variable is the estimator itself.
    """
    given, (_, end) = request.given(), SIDES[side]
    if not request.by_rewards or given.ratio is None or given.rewards()[end] == 0:
        return False
    return math.isfinite(request.range()[end])


def weighted_returns(request: Request, sign: float, limit: float) -> pl.DataFrame:
    """Return limit + c_H (G − limit) of each trajectory.

    A difference G − limit within rounding of 0 is set to 0, so that a large weight does not magnify it.
    """
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
