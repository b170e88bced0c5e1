"""The lower bound of high-confidence off-policy evaluation, finite-sample. For x ≥ 0, cut off at c, y = min(x, c):

    μ ≥ ȳ − 7 c ln(2/δ) / (3 (n − 1)) − (1/n) √( ln(2/δ)/(n − 1) · Σ_i Σ_j (y_i − y_j)² )

The double sum over pairs is 2 n (n−1) s²: this is Maurer and Pontil's bound (`bernstein`) on [0, c], and cutting off
only lowers the mean. c must not depend on the trajectories that it cuts off. It is therefore chosen on a pre-sample,
the first two of the 40 rounds, which are 5% of the trajectories by a hash of their ids. The bound is computed from the
n others. Each x of the pre-sample is tried as c. The one that would give the highest bound for n trajectories with the
ȳ and s² of the pre-sample is taken.

The method bounds from below only, as published; a bound below 0 is replaced by 0.

Thomas, Theocharous & Ghavamzadeh, "High-confidence off-policy evaluation" (AAAI 2015), theorem 1.
"""

from __future__ import annotations

import math

import numpy as np

from offpolicy.intervals import bernstein
from offpolicy.intervals.nonnegative import sketch_of
from offpolicy.intervals.request import Ends, Request, WithheldError
from offpolicy.intervals.sketch import Integers, Sketch
from offpolicy.protocols import Floats

#: The number of rounds in the pre-sample, 5% of the trajectories.
PRE_SAMPLE = 2


def ends(request: Request) -> Ends:
    """Return the lower bound of an average."""
    sketch = sketch_of(request, "lower")
    low = sketch.floor + lower(sketch, request.tail)
    chosen = {"cap": cap(sketch, request.tail), "pre_sample": int(parts(sketch)[0].sum())}
    return Ends(low, None, {"lowest": sketch.floor} | chosen)


def lower(sketch: Sketch, delta: float) -> float:
    """Return the lower bound on the mean of x.

    >>> import numpy as np
    >>> from offpolicy.intervals.hcope import lower
    >>> from offpolicy.intervals.sketch import Sketch
    >>> x = np.random.default_rng(0).exponential(size=2000)
    >>> round(lower(Sketch.of(range(2000), x, floor=0.0), 0.05), 2)
    0.91
    """
    before, rest = parts(sketch)
    if before.sum() < 2 or rest.sum() < 2:
        sizes = f"{before.sum()} and {rest.sum()}"
        raise WithheldError(f"hcope needs two trajectories in its pre-sample and two others, not {sizes}")
    return max(0.0, bound(sketch.x, rest, cap(sketch, delta), delta))


def parts(sketch: Sketch) -> tuple[Integers, Integers]:
    """Return the counts of the pre-sample and those of the other trajectories."""
    return sketch.counts[:PRE_SAMPLE].sum(axis=0), sketch.counts[PRE_SAMPLE:].sum(axis=0)


def cap(sketch: Sketch, delta: float) -> float:
    """Return the c for which the pre-sample alone predicts the highest bound."""
    before, rest = parts(sketch)
    chosen = before > 0
    c, count, seen, n = sketch.x[chosen], before[chosen], int(before.sum()), int(rest.sum())
    # Σ y and Σ y² are the sums up to c, plus c or c² for each value that is cut off; they are computed for every c at
    # once. If rounding makes another c look best, the bound stays valid.
    cut = seen - np.cumsum(count)
    mean = (np.cumsum(count * c) + cut * c) / seen
    square = (np.cumsum(count * c**2) + cut * c**2) / seen
    error = np.sqrt((square - mean**2).clip(0) * seen / (seen - 1) / n)
    promised = [m - bernstein.half_width(e, top, n, delta) for m, e, top in zip(mean, error, c, strict=True)]
    return float(c[np.argmax(promised)])


def bound(x: Floats, count: Integers, c: float, delta: float) -> float:
    """Return the bound from the counted trajectories."""
    y, n = np.minimum(x, c), int(count.sum())
    mean = float((count * y).sum()) / n
    variance = float((count * (y - mean) ** 2).sum()) / (n - 1)
    return mean - bernstein.half_width(math.sqrt(variance / n), c, n, delta)
