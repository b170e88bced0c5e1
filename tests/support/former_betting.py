"""Betting in five rounds with one stake for each, in plain Python: what the present stakes are held against.

λ_k(m) = min(√(2 ln(1/δ) / (n σ²_k)), ¾/m)        σ²_k over the rounds before, which end at 5, 10, 20, 40 and 100%
"""

import math

import numpy as np
from offpolicy.folds import share_of
from offpolicy.intervals.sketch import SEED


def lower(x: np.ndarray, delta: float) -> float:
    """Return the bound on the mean of x, of trajectories with the ids 0, …, n − 1."""
    rounds = np.searchsorted((0.05, 0.1, 0.2, 0.4, 1.0), share_of(range(len(x)), SEED), side="right")
    stake, enough = np.zeros(len(x)), math.log(1 / delta)
    for k in range(1, 5):
        seen = x[rounds < k]
        if seen.any():
            spread = seen.var() + seen.mean() ** 2 / len(seen)
            stake[rounds == k] = math.sqrt(2 * enough / (len(x) * spread))
    low, high = 0.0, float(x.max())
    for _ in range(40):
        m = (low + high) / 2
        rejected = np.log1p(np.minimum(stake, 0.75 / m) * (x - m)).sum() >= enough
        low, high = (m, high) if rejected else (low, m)
    return low
