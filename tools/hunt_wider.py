"""Search for samples in which `betting` is wider than `bernstein` with the same bounds, over laws of seven kinds."""

import math

import numpy as np
from offpolicy.intervals import bernstein, betting
from offpolicy.intervals.sketch import Sketch


def drawn(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw values in [0, 1] from a law that is chosen at random, or return 1 minus them."""
    rare = rng.random(n) < 10 ** rng.uniform(-4, 0)
    heavy = np.exp(rng.normal(size=n) * rng.uniform(0.1, 3))
    kinds = (
        lambda: rare.astype(float),
        lambda: 1 - rare * rng.random(),
        lambda: rng.beta(*10 ** rng.uniform(-1.5, 2, 2), n),
        lambda: heavy / (heavy.max() * 10 ** rng.uniform(0, 1)),
        lambda: np.full(n, rng.random()),
        lambda: np.where(rare, rng.random(n), rng.random()),
        lambda: rng.choice(rng.random(3), n, p=rng.dirichlet([0.3] * 3)),
    )
    values = kinds[rng.integers(len(kinds))]()
    return 1 - values if rng.random() < 0.5 else values


def hunt(samples: int) -> dict:
    """Count the informative bounds of `bernstein` and those that are better, with the ratios of distances from x̄."""
    shares = []
    for seed in range(samples):
        rng = np.random.default_rng(seed)
        n, delta = int(10 ** rng.uniform(math.log10(5), math.log10(5000))), 10 ** rng.uniform(-6, -0.31)
        values = drawn(rng, n)
        low, high = -rng.choice([0, 0, 0, 0.3, 2]), 1 + rng.choice([0, 0, 0, 0.3, 2])
        far = bernstein.half_width(values.std(ddof=1) / math.sqrt(n), high - low, n, delta)
        if values.mean() - far > low:
            bound = low + betting.lower(Sketch.of(range(n), values, low), delta)
            shares.append((values.mean() - bound) / far)
    return {
        "samples": samples,
        "telling": len(shares),
        "wider": sum(bool(share > 1) for share in shares),
        "median": float(np.median(shares)),
        "worst": float(max(shares)),
    }
