"""Anderson's bound by a band around the empirical distribution function, finite-sample. For x ≥ 0:

    F ≤ F_n + ε everywhere with probability 1 − δ,    ε = √(ln(1/δ) / 2n)        Dvoretzky, Kiefer & Wolfowitz; Massart
    μ = ∫ (1 − F) ≥ Σ_i (x_(i) − x_(i−1)) · max(0, 1 − (i−1)/n − ε)              x_(0) = 0

that is, the share ε of the largest values counts as 0. Massart's constant needs δ ≤ ½; for a larger δ, the bound for ½
is taken.

Anderson, "Confidence limits for the expected value of an arbitrary bounded random variable with a continuous
distribution function" (1969); Massart, "The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality" (1990).
"""

from __future__ import annotations

import math

import numpy as np

from offpolicy.intervals.nonnegative import ends_by
from offpolicy.intervals.request import Ends, Request
from offpolicy.intervals.sketch import Sketch


def ends(request: Request) -> Ends:
    """Return the interval of an average."""
    return ends_by(request, lower)


def lower(sketch: Sketch, delta: float) -> float:
    """Return the lower bound on the mean of x.

    >>> import numpy as np
    >>> from offpolicy.intervals.anderson import lower
    >>> from offpolicy.intervals.sketch import Sketch
    >>> x = np.random.default_rng(0).exponential(size=2000)
    >>> round(lower(Sketch.of(range(2000), x, floor=0.0), 0.05), 2)
    0.88
    """
    n, count = sketch.episodes, sketch.all
    epsilon = math.sqrt(math.log(max(1 / delta, 2)) / (2 * n))
    above = (np.cumsum(count[::-1])[::-1] / n - epsilon).clip(0)
    return float((np.diff(sketch.x, prepend=0.0) * above).sum())
