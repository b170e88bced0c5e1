"""A confidence sequence by betting: valid at every look at a log that grows, anytime.

    K_n(m) = (1/J) Σ_j Π_{i≤n} (1 + f_j (x_i/m − 1)),        f_j = 2^{−j}, j = 1, …, J = 20

Each product is the capital of a gambler with the fixed stake λ = f_j/m (see `betting`), hence a nonnegative
martingale from 1 at m = μ, and so is their mean. By Ville's inequality it ever reaches 1/δ with probability δ at
most:

    P(μ ≥ inf {m : K_n(m) < 1/δ} for all n) ≥ 1 − δ

No stake is learned, so that nothing depends on n or on an order: K_n is the same for any order of its n
trajectories. What is needed is that each look sees the trajectories of the looks before and new ones, that the
trajectories are independent, and that when to look, or to stop, is decided by what has been seen. Then all the
intervals hold at once, and so does their intersection. For one look `betting` is narrower, by about a third.

With a bound on ratios there are two variables (see `nonnegative`), and K_n is the mean over the capitals of both.
Which one is better cannot be learned here, where nothing depends on an order; the mean costs a factor of 2 in 1/δ at
most. The same bounds must be given at every look.

The values must stay what they were. A model that is fitted anew for each look changes them, and voids the promise;
`cross_fit` refuses it therefore.

Waudby-Smith & Ramdas (JRSS B 2024), section 4; Ville, "Étude critique de la notion de collectif" (1939).
"""

from __future__ import annotations

import math

import numpy as np

from offpolicy.intervals.betting import rejected_below
from offpolicy.intervals.nonnegative import ends_by
from offpolicy.intervals.request import Ends, Request
from offpolicy.intervals.sketch import Sketch
from offpolicy.protocols import Floats

#: f_j: the smallest is right for about 10¹² trajectories.
FRACTIONS = 0.5 ** np.arange(1, 21)


def ends(request: Request) -> Ends:
    """The interval of an average at this look."""
    return ends_by(request, lower, by_ratios=True)


def lower(sketch: Sketch, delta: float, *others: Sketch) -> float:
    """Return the bound on the mean of x; others may be sketches as in `betting`.

    >>> import numpy as np
    >>> from offpolicy.intervals.sequence import lower
    >>> from offpolicy.intervals.sketch import Sketch
    >>> x = np.random.default_rng(0).exponential(size=2000)
    >>> [round(lower(Sketch.of(range(n), x[:n], floor=0.0), 0.05), 2) for n in (20, 200, 2000)]
    [0.56, 0.91, 0.94]
    """
    played = [(each.x, each.all, each.floor - sketch.floor) for each in (sketch, *others)]

    def log_capital(m: Floats) -> Floats:
        logs = [(count * np.log1p(FRACTIONS[:, None] * (x / (m - base) - 1))).sum(axis=1) for x, count, base in played]
        return np.logaddexp.reduce(np.concatenate(logs), keepdims=True) - math.log(len(logs) * len(FRACTIONS))

    least = max(base for *_, base in played)
    most = max(base + float(x.max(initial=0.0)) for x, _, base in played)
    return rejected_below(log_capital, delta, max(least, 0.0), most)
