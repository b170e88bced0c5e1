"""The usual bootstrap of a mean: indices of resamples are drawn, and the values gathered and averaged."""

import numpy as np

NAME = "NumPy, indices drawn"
_AT_ONCE = 1 << 22
"""The number of indices in memory at a time."""


def run(values: np.ndarray, replicates: int, seed: int, confidence: float = 0.95) -> tuple[float, float]:
    rng, n = np.random.default_rng(seed), len(values)
    at_once = max(1, _AT_ONCE // n)
    means = [
        values[rng.integers(0, n, size=(min(at_once, replicates - first), n))].mean(axis=1)
        for first in range(0, replicates, at_once)
    ]
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail])
    return float(low), float(high)


def check() -> None:
    """Check that the interval of a mean is that of the normal law, to the precision of the replicates."""
    values = np.random.default_rng(0).normal(size=2000)
    low, high = run(values, 2000, seed=1)
    error = values.std(ddof=1) / np.sqrt(len(values))
    for end, expected in ((low, -1.96), (high, 1.96)):
        assert abs((end - values.mean()) / error - expected) < 0.2
