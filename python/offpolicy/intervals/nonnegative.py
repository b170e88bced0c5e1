"""Bounds from one side of values that are known to be above a floor; from the other side, of −values above −ceiling.

The value of a trajectory lies in [L, U] by the given bounds on ratios, rewards and models; see `offpolicy.bounds`. Of
`step-is` more is known. Let rewards be in [a, b] and Γ = Σ_{t≤H} γ^{t−1}. With the constant a as guess, `dr-bsl` is

    Σ_t γ^{t−1} [c_{t−1} q_t + c_t (r_t − q_t)] = aΓ + Σ_{t≤H} γ^{t−1} c_t (r_t − a) ≥ aΓ        q_t = a Σ_{k≤H−t} γ^k

where an ended trajectory goes on with r = 0 and keeps c_T (sum by parts: γ^{t−1} q_t − γ^t q_{t+1} = a γ^{t−1}). Its
expectation is that of `step-is`, and its floor needs no bound on ratios; with the guess b it has the ceiling bΓ. So
`betting`, `sequence`, `hcope` and `anderson` bound `step-is` by these values, given bounds on rewards alone. Since they
use that weights have mean 1, the estimate itself may be outside of the interval.

They hold even where the new policy takes actions that the old one never does. E c_t < 1 there; but the lower bound is
made of Σ γ^{t−1} c_t (r_t − a), which has nothing negative in it and can only lose, and the upper one of
Σ γ^{t−1} c_t (b − r_t) likewise.
"""

from __future__ import annotations

from collections.abc import Callable

from offpolicy.intervals.request import CONTRADICTED, Ends, Request, WithheldError
from offpolicy.intervals.sketch import BelowFloorError, Sketch

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
    return request.given().returns(request.terms) if request.estimator == "step-is" else request.range()


def _sketch(request: Request, sign: float, end: int) -> Sketch:
    """Reads the log once and keeps the sketch, n values being in memory only meanwhile."""
    floor = sign * _range(request)[end]
    estimator, guess = request.estimator, None
    if estimator == "step-is":
        estimator, guess = "dr-bsl", request.given().rewards()[end]

    def make() -> Sketch:
        found = request.samples.values(request.policy, estimator, guess)
        return Sketch.of(found["episode"], sign * found["value"].to_numpy(), floor)

    try:
        return request.samples.once((request.policy, estimator, guess, sign, floor), make)
    except BelowFloorError as error:
        value, limit = sign * error.value, sign * error.floor
        raise WithheldError(f"{CONTRADICTED}: a trajectory has the value {value:g}, beyond {limit:g}") from None
