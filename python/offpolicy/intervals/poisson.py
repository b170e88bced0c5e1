"""Poisson counts: how often a trajectory is in a resample, by a hash of the seed, the episode's id and the resample.

    N = Σ_k 1{u < t_k},    u: 16 bits of hash(seed, id, b),    t_k ≈ 2¹⁶ P(Poisson(1) ≥ k)

A resample of n out of n trajectories draws each about Poisson(1) times. Counts by a hash need neither n nor an order,
so that every shard finds the same ones. The thresholds t_k are the nearest integers, except for two that were moved by
one so that mean and variance of N are exactly 1. Output number 1 + ⌊b/4⌋ of SplitMix64, started at the hash of the id
(`offpolicy.folds`), is a word of 64 bits that serves four resamples.

Hanley & MacGibbon, "Creating non-parametric bootstrap samples using Poisson frequencies" (2006).
"""

from __future__ import annotations

import numpy as np

from offpolicy.folds import GAMMA, Hashes, mix
from offpolicy.protocols import Floats

#: t_k for k = 1, …, 8, out of 2¹⁶.
THRESHOLDS = (41427, 17317, 5262, 1245, 240, 39, 5, 1)
#: The largest N.
MOST = len(THRESHOLDS)
#: N for each u.
COUNT = (np.arange(1 << 16)[:, None] < np.array(THRESHOLDS)).sum(axis=1).astype(np.float64)
#: How many resamples share a word of 64 bits.
LANES = 4
#: How many trajectories are done at a time, so that intermediate results stay in a cache.
AT_ONCE = 256


def weights(keys: Hashes, words: range, out: Floats | None = None) -> Floats:
    """Return N of trajectories with these hashes in the resamples of some words, (n, 4 · words), in `out` if given.

    >>> import numpy as np
    >>> from offpolicy.folds import hash_of
    >>> from offpolicy.intervals.poisson import weights
    >>> weights(hash_of(["ann", "bob"]), range(2)).astype(int)
    array([[1, 1, 2, 0, 1, 2, 2, 1],
           [0, 1, 1, 2, 1, 2, 2, 1]])
    """
    found = np.empty((len(keys), LANES * len(words))) if out is None else out
    steps = np.arange(words.start + 1, words.stop + 1, dtype=np.uint64) * GAMMA
    for start in range(0, len(keys), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        outputs = mix(keys[some, None] + steps)
        COUNT.take(outputs.view(np.uint16), out=found[some], mode="clip")  # the fastest mode; nothing is clipped
    return found
