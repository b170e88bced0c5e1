"""Random rewards, given by mean and variance of r_t given (s_t, a_t) or given (s_t, a_t, s_{t+1})."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from offpolicy.errors.kinds.of_theory import negative_variance, no_broadcast, shapes_differ
from offpolicy.theory.arrays import as_array, as_probabilities, in_fractions


class Rewards:
    """The means and variances of random rewards.

    Arrays are (S, A), (H, S, A) where the reward depends on the step, (S, A, S) where it depends on the next state, or
    (H, S, A, S) for both. In the latter two the variance is conditional on the next state.

    >>> from offpolicy import theory
    >>> theory.Rewards(mean=[[1.0, 2.0]], variance=[[0.5, 0.0]]).variance
    array([[0.5, 0. ]])
    """

    def __init__(self, mean: ArrayLike, variance: ArrayLike | None = None) -> None:
        """Keep means and variances; without a variance, rewards are deterministic."""
        variance = np.zeros(np.shape(mean)) if variance is None else variance
        exact = in_fractions(rewards=mean, variance=variance)
        self.mean = as_array(mean, exact, "rewards")
        self.variance = as_array(variance, exact, "the variance of rewards")
        if self.variance.shape != self.mean.shape:
            raise shapes_differ(
                what="mean and variance of rewards", axis="shape", shapes=f"{self.mean.shape} and {self.variance.shape}"
            )
        if (self.variance < 0).any():
            raise negative_variance(least=f"{float(self.variance.min()):.6g}")

    @classmethod
    def from_distribution(cls, values: ArrayLike, probabilities: ArrayLike) -> Rewards:
        """Make rewards with finitely many values, listed along the last axis of both arrays, which are broadcast.

        >>> from offpolicy import theory
        >>> purchase = [[[0.9, 0.1], [0.8, 0.2]]]  # of nothing or of one thing, for each state and action
        >>> theory.Rewards.from_distribution(values=[0.0, 1.0], probabilities=purchase).variance.round(2)
        array([[0.09, 0.16]])
        """
        exact = in_fractions(values=values, probabilities=probabilities)
        r, p = as_array(values, exact, "values"), as_array(probabilities, exact, "probabilities")
        if not r.ndim or not p.ndim or r.shape[-1] != p.shape[-1]:
            raise shapes_differ(
                what="values and probabilities", axis="last axis", shapes=f"shapes {r.shape} and {p.shape}"
            )
        p = as_probabilities(p, "rewards")
        try:
            mean = (p * r).sum(axis=-1)
        except ValueError:
            raise no_broadcast(values=r.shape, probabilities=p.shape) from None
        return cls(mean, (p * (r - mean[..., None]) ** 2).sum(axis=-1))
