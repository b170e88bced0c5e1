"""A confidence sequence by betting: valid at every look at a log that grows, anytime.

    K_n(m) = (1/J) Σ_j Π_{i≤n} (1 + f_j (x_i/m − 1)),        f_j = 2^{−j}, j = 1, …, J = 20

Each product is the capital of a gambler with the fixed stake λ = f_j/m (`betting`). At m = μ it is a nonnegative
martingale that starts at 1, and so is the mean of all. By Ville's inequality the probability that it ever reaches 1/δ
is at most δ:

    P(μ ≥ inf {m : K_n(m) < 1/δ} for all n) ≥ 1 − δ

No stake is learned, so that K_n is the same for any order of its n trajectories. The trajectories must be independent,
each look must see those of the looks before and new ones, and the decision when to look or to stop may depend only on
what has been seen. Then all the intervals hold at once, and so does their intersection. For a single look `betting` is
narrower, by about a third.

With a bound on ratios there are two variables (`nonnegative`), and K_n is the mean over the capitals of both. The
better one cannot be learned here, because nothing may depend on an order; the mean costs a factor of at most 2 in 1/δ.
The same bounds must be given at every look.

The values of trajectories must not change between looks. A model that is fitted anew for each look changes them and
voids the guarantee; therefore `cross_fit` refuses this method.

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

#: f_j; the smallest suits about 10¹² trajectories.
FRACTIONS = 0.5 ** np.arange(1, 21)


def ends(request: Request) -> Ends:
    """Return the interval of an average at this look."""
    return ends_by(request, lower, by_ratios=True)


def lower(sketch: Sketch, delta: float, *others: Sketch) -> float:
    """Return the lower bound on the mean of x; `others` are sketches of further variables as in `betting`.

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
