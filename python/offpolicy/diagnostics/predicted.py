"""The effective sample size predicted by the ratios of single steps, even if the log does not show large weights.

If the ratios of different steps are independent of each other and of the length of an episode, and p_t is the share of
the episodes that run at step t,

    ESS_t ≈ n / w_t,    w_t = E[c_t²] = 1 + Σ_{s≤t} p_s v_s Π_{k<s} (1 + v_k),    v_s = E[ρ_s²]/E[ρ_s]² − 1

because the weight of an episode that runs at step s is the product of all its ratios up to s. If no episode ends early,
w_t = Π_{s≤t} (1 + v_s).

The mean of ρ² is well estimated from n single steps, but the mean of c², the square of a product of many ratios, is
not: weights that are so large and rare that no episode of the log has one can raise E[c²] a hundredfold without any
sign in Σc². A product of many ratios is nearly lognormal, and its skewness γ is then nearly w^{3/2}. If γ²/n = w³/n is
large, most logs lack the weights that matter most. The mixture of a target policy with the behaviour policy has the
ratios α + (1 − α)ρ, and (1 − α)² v_s in place of v_s.
"""

from __future__ import annotations

import math

import numpy as np

from offpolicy.protocols import Floats

#: Shares of the behaviour policy are given in hundredths.
STEP = 0.01


def spread(mean_ratio: Floats, mean_squared_ratio: Floats) -> Floats:
    """Return v_s of every step; it is infinite where it is out of f64 range or no weight is left.

    >>> import numpy as np
    >>> spread(np.array([1.0, 0.5]), np.array([1.5, 0.5]))
    array([0.5, 1. ])
    """
    with np.errstate(all="ignore"):
        v = mean_squared_ratio / mean_ratio**2 - 1
    return np.where(np.isfinite(v), np.maximum(v, 0.0), np.inf)


def sizes(n: int, running: Floats, v: Floats) -> Floats:
    """Return ESS_t of every step, from v_s and the shares p_s of running episodes.

    >>> import numpy as np
    >>> sizes(9, np.ones(2), np.array([0.5, 1.0])), sizes(8, np.array([1.0, 0.5]), np.array([1.0, 2.0]))
    (array([6., 3.]), array([4., 2.]))
    """
    predicted: Floats = n * np.exp(-_log_w(running, v))
    return predicted


def leaning(n: int, running: Floats, v: Floats) -> float | None:
    """Return w³/n of products of several ratios, or None for a single step or a number out of f64 range.

    >>> import numpy as np
    >>> one = np.ones(9)
    >>> round(leaning(16, one[:2], one[:2]), 9), leaning(16, one[:1], one[:1]), leaning(9, one, np.full(9, 1e90))
    (4.0, None, None)
    """
    log = 3 * float(_log_w(running, v)[-1]) - math.log(n)
    return math.exp(log) if len(v) > 1 and log < math.log(np.finfo(float).max) else None


def enough_alpha(n: int, running: Floats, v: Floats, enough: int) -> float | None:
    """Return the least share of π0, in hundredths, in a mixture with an ESS of `enough` and w³/n of at most 1.

    >>> import numpy as np
    >>> one = np.ones(16)
    >>> enough_alpha(1000, one, np.full(16, 0.64), 100), enough_alpha(1000, one, np.full(16, 0.1), 100)
    (0.51, 0.0)
    >>> enough_alpha(99, one[:1], np.zeros(1), 100) is None  # not even the behaviour policy has
    True
    """
    if n < enough or not np.isfinite(v).all():
        return None
    size = max(enough, n ** (2 / 3)) if len(v) > 1 else enough
    low, high = 0, round(1 / STEP)
    while low < high:
        middle = (low + high) // 2
        fits = float(_log_w(running, (1 - STEP * middle) ** 2 * v)[-1]) <= math.log(n / size)
        low, high = (low, middle) if fits else (middle + 1, high)
    return round(low * STEP, 2)


def _log_w(running: Floats, v: Floats) -> Floats:
    """Return ln w_t of every step."""
    grown = np.concatenate([[0.0], np.cumsum(np.log1p(v))[:-1]])
    with np.errstate(divide="ignore", invalid="ignore"):
        added = np.where(v > 0, np.log(running) + np.log(v) + grown, -np.inf)
    found: Floats = np.logaddexp.accumulate(np.concatenate([[0.0], added]))[1:]
    return found
