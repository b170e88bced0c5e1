"""MAGIC as it was published, to compare ours with: Thomas & Brunskill (2016), eq. (5) and Algorithm 1, with κ = 200.

    Ω_jk = n/(n-1) Σ_i (g_j,i - ḡ_j) (g_k,i - ḡ_k)    g_j,i: what trajectory i adds to g_j
    b_j = distance of g_j from the interval between the 5% and 95% percentiles of resampled WDR, and WDR itself

The reference code that the paper's first author released later says of the paper's figures that their Ω lacks the
factor n: `factor=False` leaves it out. Episodes of equal length, γ = 1.
"""

import numpy as np
import polars as pl
from scipy.optimize import nnls

RESAMPLES = 200


class Returns:
    """g_0, …, g_H of a log and of its resamples."""

    def __init__(self, log: pl.DataFrame, horizon: int) -> None:
        def by_step(column: pl.Expr) -> np.ndarray:
            return log.select(column).to_series().to_numpy().reshape(-1, horizon)

        after = by_step(pl.col("target_prob") / pl.col("behavior_prob")).cumprod(axis=1)
        before = np.hstack([np.ones((len(after), 1)), after[:, :-1]])
        self.weights = after, before
        self.terms = after * by_step(pl.col("reward") - pl.col("q_hat")), before * by_step(pl.col("v_hat"))

    def resampled(self, counts: np.ndarray) -> np.ndarray:
        """With each trajectory so many times: (resamples, H + 1)."""
        means = (counts @ terms / (counts @ weights) for terms, weights in zip(self.terms, self.weights, strict=True))
        return summed(*means)

    def shares(self) -> np.ndarray:
        """g_j,i of each trajectory: (n, H + 1)."""
        return summed(*(terms / weights.sum(axis=0) for terms, weights in zip(self.terms, self.weights, strict=True)))


def summed(residual: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Of length j: the residuals of the first j steps, and the values of one more, if there is one."""
    first = np.zeros((len(residual), 1))
    residuals, values = (np.hstack([first, part.cumsum(axis=1)]) for part in (residual, value))
    return residuals + np.hstack([values[:, 1:], values[:, -1:]])


def value(log: pl.DataFrame, horizon: int, rng: np.random.Generator, factor: bool = True) -> float:
    """The estimate."""
    returns = Returns(log, horizon)
    shares = returns.shares()
    n, g = len(shares), shares.sum(axis=0)
    omega = np.atleast_2d(np.cov(shares.T)) * (n if factor else 1)
    wdr = returns.resampled(rng.multinomial(n, np.full(n, 1 / n), RESAMPLES).astype(float))[:, -1]
    low, high = np.quantile(wdr, [0.05, 0.95])
    bias = np.maximum(0, np.maximum(g - max(high, g[-1]), min(low, g[-1]) - g))
    return float(least(omega + np.outer(bias, bias)) @ g)


def least(matrix: np.ndarray) -> np.ndarray:
    """argmin xᵀMx over the simplex, as least squares of a root of M and, with a large weight, of Σx = 1."""
    values, vectors = np.linalg.eigh(matrix)
    root = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
    weight = 1e4 * (np.abs(root).max() or 1.0)
    x, _ = nnls(np.vstack([root, np.full(len(matrix), weight)]), np.append(np.zeros(len(matrix)), weight))
    return x / x.sum()
