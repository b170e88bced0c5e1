"""k̂, the shape of the tail of weights, by Zhang & Stephens (2009) as Vehtari et al. (2024) use it.

The M = ⌈min(n/5, 3√n)⌉ largest weights (16,383 from n = 30 million on), less the next one, are taken as draws x of a
generalised Pareto distribution with shape k. Only moments of order less than 1/k exist, so that from k = 1/2 on the
weights have no variance and from k = 1 on no mean. With m = 30 + ⌊√M⌋ points θ_j, q the lower quartile of x and x* its
largest value,

    θ_j = 1/x* + (1 − √(m/(j − ½))) / (3q),    k(θ) = mean ln(1 − θx),    ℓ(θ) = M (ln(−θ/k) − k − 1)
    θ̂ = Σ_j θ_j w_j,    w_j ∝ exp ℓ(θ_j),    k̂ = (M k(θ̂) + 10 · ½) / (M + 10)

The last equation pulls k̂ of few weights towards ½. Weights that differ only by rounding, such as products of the same
ratios in another order, are treated as equal, and those equal to the next one are not part of the tail.
"""

from __future__ import annotations

import math

import numpy as np

from offpolicy.protocols import Floats

#: The least number of weights from which the shape of a tail is estimated.
FEWEST = 5
#: Weights whose relative difference is at most this differ by rounding only.
ROUNDING = 1e-9
#: The number of draws for which the prior guess ½ counts.
PRIOR = 10


def shape(largest: Floats) -> float | None:
    """Return k̂ of the largest weights in falling order; the tail begins at the last of them.

    >>> import numpy as np
    >>> tail = np.append((1 - (np.arange(400) + 0.5) / 400) ** -0.8, 1.0)  # P(x > t) = t^(-1/0.8)
    >>> round(shape(np.sort(tail)[::-1]), 1)
    0.8
    >>> shape(np.ones(100)) is None, shape(np.array([])) is None  # all weights are equal, or 0
    (True, True)
    >>> shape(np.array([1.1 * 0.9, 0.9 * 1.1, 1.1 - 0.11] * 30)) is None  # all are 0.99
    True
    """
    next_one = largest[-1:]
    x = np.sort(largest[:-1] - next_one)
    x = x[x > ROUNDING * next_one.sum()]
    if len(x) < FEWEST:
        return None
    m, last, quartile = len(x), x[-1], x[int(len(x) / 4 + 0.5) - 1]
    points = 30 + math.isqrt(m)
    theta = 1 / last + (1 - np.sqrt(points / (np.arange(points) + 0.5))) / (3 * quartile)
    theta = theta[theta != 0]
    k = np.log1p(np.outer(-theta, x)).mean(axis=1)
    likelihood = m * (np.log(-theta / k) - k - 1)
    weights = np.exp(likelihood - likelihood.max())
    best = float(weights @ theta / weights.sum())
    found = float(np.log1p(-best * x).mean())
    return (m * found + PRIOR * 0.5) / (m + PRIOR)
