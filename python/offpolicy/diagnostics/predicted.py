"""The effective sample size that the ratios of single steps predict, whether or not the log shows the large weights.

Where the ratios of different steps are independent, E[c_t²] is a product, and with p_t the share of the episodes that
run at step t,

    ESS_t ≈ n / w_t,    w_t = Π_{s≤t} (1 + p_s v_s),    v_s = E[ρ_s²]/E[ρ_s]² − 1

A mean of ρ² over n steps is known well where that of a product of many is not: weights that are so large and so seldom
that no episode of the log has one raise E[c²] a hundredfold, and nothing in Σc² tells. A product of many ratios is
nearly lognormal, and its skewness γ then nearly w^{3/2}: where γ²/n = w³/n is large, most logs lack the weights that
matter most. The mixture of a target policy with the behaviour policy has the ratios α + (1 − α)ρ, and (1 − α)² v_s in
the place of v_s.
"""

from __future__ import annotations

import math

import numpy as np

from offpolicy.protocols import Floats

#: Shares of the behaviour policy are told in hundredths.
STEP = 0.01


def spread(running: Floats, mean_ratio: Floats, mean_squared_ratio: Floats) -> Floats:
    """p_s v_s of every step, from the shares p_s that run; infinite where no f64 holds it, or no weight is left.

    >>> import numpy as np
    >>> spread(np.array([1.0, 0.5]), np.array([1.0, 0.5]), np.array([1.5, 0.5]))
    array([0.5, 0.5])
    """
    with np.errstate(all="ignore"):
        v = mean_squared_ratio / mean_ratio**2 - 1
    return np.where(np.isfinite(v), running * np.maximum(v, 0.0), np.inf)


def sizes(n: int, found: Floats) -> Floats:
    """ESS_t of every step, from p_s v_s.

    >>> import numpy as np
    >>> sizes(9, np.array([0.5, 1.0]))
    array([6., 3.])
    """
    predicted: Floats = n * np.exp(-np.cumsum(np.log1p(found)))
    return predicted


def leaning(n: int, found: Floats) -> float | None:
    """w³/n of products of several ratios; None of single ones, and where no f64 holds it.

    >>> import numpy as np
    >>> round(leaning(16, np.array([1.0, 1.0])), 9), leaning(16, np.array([3.0])), leaning(9, np.full(9, 1e90))
    (4.0, None, None)
    """
    log = 3 * float(np.log1p(found).sum()) - math.log(n)
    return math.exp(log) if len(found) > 1 and log < math.log(np.finfo(float).max) else None


def enough_alpha(n: int, found: Floats, enough: int) -> float | None:
    """The least share of the behaviour policy, in hundredths, of a mixture with an ESS of `enough` and w³/n up to 1.

    >>> import numpy as np
    >>> enough_alpha(1000, np.full(16, 0.64), 100), enough_alpha(1000, np.full(16, 0.1), 100)
    (0.51, 0.0)
    >>> enough_alpha(99, np.zeros(1), 100) is None  # not even the behaviour policy has
    True
    """
    if n < enough or not np.isfinite(found).all():
        return None
    size = max(enough, n ** (2 / 3)) if len(found) > 1 else enough
    low, high = 0, round(1 / STEP)
    while low < high:
        middle = (low + high) // 2
        fits = float(np.log1p((1 - STEP * middle) ** 2 * found).sum()) <= math.log(n / size)
        low, high = (low, middle) if fits else (middle + 1, high)
    return round(low * STEP, 2)
