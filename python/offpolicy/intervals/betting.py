"""A lower bound by betting, finite-sample. For x ≥ 0 with mean μ, a gambler who stakes λ on x being above m has

    K(m) = Π_i (1 + λ_i(m) (x_i − m))        0 ≤ λ_i(m) ≤ 1/m, chosen before x_i is seen

If m = μ the game is fair: K is a nonnegative martingale from 1, which ever reaches 1/δ with probability δ at most. So

    inf {m : K(m) < 1/δ}        is above μ with probability δ at most

The best stake for n trajectories is about √(2 ln(1/δ) / (n σ²)), and σ is not known. The usual way learns it from
the trajectories before, in the order of the log, on which nothing may depend here. So the log is played in five
rounds chosen by a hash of the ids: in the first no bet is made, and in each other one the stake is set by the rounds
before,

    λ_k(m) = min(√(2 ln(1/δ) / (n σ²_k)), ¾/m),    σ²_k = (Σ (x − x̄_k)² + x̄_k²) / n_k        over rounds 1, …, k − 1

which is all that predictable means; within a round the order does not matter. (x̄² stands for one more trajectory,
so that two equal values do not pass for certainty.) K falls in m, for each factor does; so the infimum is found by
bisection, and its rejected side is returned.

Waudby-Smith & Ramdas, "Estimating means of bounded random variables by betting" (JRSS B 2024); for weights without a
bound, Waudby-Smith, Wu, Ramdas, Karampatziakis & Mineiro, "Anytime-valid off-policy inference for contextual
bandits" (2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from offpolicy.intervals.nonnegative import ends_by
from offpolicy.intervals.request import Ends, Request
from offpolicy.intervals.sketch import Sketch
from offpolicy.protocols import Floats

#: The largest stake, as a share of 1/m: no single x can cost more than this share of the capital.
MOST = 0.75
#: How close bisection comes to the bound, relative to where it started.
CLOSE = 2.0**-40


def ends(request: Request) -> Ends:
    """The interval of an average."""
    return ends_by(request, lower)


def lower(sketch: Sketch, delta: float) -> float:
    """The bound on the mean of x.

    >>> import numpy as np
    >>> from offpolicy.intervals.betting import lower
    >>> from offpolicy.intervals.sketch import Sketch
    >>> x = np.random.default_rng(0).exponential(size=2000)
    >>> round(lower(Sketch.of(range(2000), x, floor=0.0), 0.05), 2)
    0.95
    """
    played = sketch.counts > 0
    rounds, cells = np.nonzero(played)
    stake, x, count = stakes(sketch, delta)[rounds], sketch.x[cells], sketch.counts[played]

    def log_capital(m: float) -> float:
        return float((count * np.log1p(np.minimum(stake, MOST / m) * (x - m))).sum())

    return rejected_below(log_capital, delta, float(x.max(initial=0.0)))


def stakes(sketch: Sketch, delta: float) -> Floats:
    """λ_k of each round, before it is held against ¾/m; 0 where nothing has been seen, or nothing above the floor."""
    before = np.cumsum(sketch.counts, axis=0) - sketch.counts
    n = np.maximum(before.sum(axis=1), 1)
    mean = (before * sketch.x).sum(axis=1) / n
    squares = (before * (sketch.x - mean[:, None]) ** 2).sum(axis=1) + mean**2
    known = squares > 0
    found: Floats = np.zeros(len(n))
    found[known] = np.sqrt(2 * math.log(1 / delta) / sketch.episodes * (n[known] / squares[known]))
    return found


def rejected_below(log_capital: Callable[[float], float], delta: float, high: float) -> float:
    """The largest m found with K(m) ≥ 1/δ, for a K that falls in m and is at most 1 at `high`; 0 if there is none."""
    enough, low, width = math.log(1 / delta), 0.0, high
    while high - low > CLOSE * width:
        m = (low + high) / 2
        if log_capital(m) >= enough:
            low = m
        else:
            high = m
    return low
