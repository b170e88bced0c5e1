"""Estimates as weighted ratios of sums over trajectories, from which resamples and the jackknife recompute them.

    θ = Σ_k w_k Σ_i y_{num(k),i} / Σ_i y_{den(k),i}        y_0 = 1

    averages   Σ x / Σ 1
    wis        Σ c_H G / Σ c_H
    step-wis   Σ_t γ^{t−1} Σ c_t r_t / Σ c_t
    wdr        Σ_t γ^{t−1} [Σ c_t (r_t − Q̂_t) / Σ c_t + Σ c_{t−1} V̂_t / Σ c_{t−1}]        c_0 = 1

The influence of a trajectory, ψ_i = n ∂θ/∂(weight of i), is linear in its columns: y_i times the gradient of θ in
the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offpolicy.evaluation.estimators import describe
from offpolicy.intervals.request import Request
from offpolicy.logs.trajectories import Steps
from offpolicy.protocols import Floats

#: The ids of n trajectories and their columns y_1, …, y_k, (n, k).
Block = tuple[pl.Series, Floats]


@dataclass(frozen=True)
class Ratios:
    """θ as a function of the sums of columns y_0, …, y_k; `num` and `den` are indices of columns."""

    weights: Floats
    num: NDArray[Any]
    den: NDArray[Any]

    @property
    def columns(self) -> int:
        """The number of columns k, without y_0."""
        return int(max(self.num.max(), self.den.max()))

    def value(self, sums: Floats) -> Floats:
        """Return θ of each row of sums, (m, k + 1), or NaN if a denominator is 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Floats = (self.weights * (sums[:, self.num] / sums[:, self.den])).sum(axis=1)
        return found

    def gradient(self, sums: Floats) -> Floats:
        """Return ∂θ/∂sums at one row of sums, (k + 1,)."""
        found = np.zeros(len(sums))
        np.add.at(found, self.num, self.weights / sums[self.den])
        np.add.at(found, self.den, -self.weights * (sums[self.num] / sums[self.den]) / sums[self.den])
        return found


def ratios(request: Request) -> tuple[Ratios, Callable[[], Iterator[Block]]]:
    """Return θ of an estimator, and a function that reads its columns from the log in blocks."""
    one, gamma, h = np.ones(1), request.terms.discount, request.terms.horizon
    policy, samples = request.policy, request.samples
    powers: Floats = np.power(float(gamma), np.arange(h), dtype=np.float64)
    t = np.arange(1, h + 1)

    def blocks(columns: Callable[[Steps], Floats], *roles: str) -> Callable[[], Iterator[Block]]:
        return lambda: ((steps.episodes, columns(steps)) for steps in samples.steps(policy, *roles, horizon=h))

    about = describe(request.estimator)
    if not about.weighted:
        values = samples.values(policy, request.estimator)
        block = values["episode"], values["value"].to_numpy()[:, None]
        return Ratios(one, np.array([1]), np.array([0])), lambda: iter([block])
    if about.weights_returns:

        def weighted_return(steps: Steps) -> Floats:
            c, returns = steps.c[:, -1], (powers * steps.columns["reward"]).sum(axis=1)
            return np.stack([c * returns, c], axis=1)

        return Ratios(one, np.array([1]), np.array([2])), blocks(weighted_return, "reward")
    if "reward" in about.step_sums:
        found = Ratios(powers, t, h + t)
        return found, blocks(lambda steps: np.hstack([steps.c * steps.columns["reward"], steps.c]), "reward")

    def doubly_robust(steps: Steps) -> Floats:
        reward, q_hat, v_hat = (steps.columns[role] for role in ("reward", "q_hat", "v_hat"))
        before = np.hstack([np.ones((len(reward), 1)), steps.c[:, :-1]])
        return np.hstack([steps.c * (reward - q_hat), before * v_hat, steps.c])

    before = np.concatenate([[0], 2 * h + t[:-1]])
    found = Ratios(np.concatenate([powers, powers]), np.arange(1, 2 * h + 1), np.concatenate([2 * h + t, before]))
    return found, blocks(doubly_robust, "reward", "q_hat", "v_hat")
