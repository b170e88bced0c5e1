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

from offpolicy.evaluation.estimators import Description, describe
from offpolicy.intervals.request import Request, WithheldError
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


#: The traits by which each form of a weighted estimator is known: whether it weights returns, the sums that it has one
#: of per step, and the columns that it needs.
FORMS = {
    (True, frozenset[str](), frozenset({"ratio"})): "weighted returns",
    (False, frozenset({"weight", "reward"}), frozenset({"ratio"})): "weighted rewards",
    (False, frozenset({"weight", "residual", "value"}), frozenset({"ratio", "q_hat", "v_hat"})): "doubly robust",
}


def form_of(about: Description) -> str:
    """Return which of the forms above an estimator has, and withhold the interval of one that has another form.

    A blend, weights that are pulled towards 0 and a baseline each change the estimate in a way that no form here has.
    """
    if not about.weighted:
        return "averages"
    found = FORMS.get((about.weights_returns, frozenset(about.step_sums), frozenset(about.needs)))
    if found is None or about.blended or about.shrinks or about.needs_baseline:
        raise WithheldError(f"no form of {about.id} is known by which trajectories can be left out or drawn again")
    return found


def ratios(request: Request) -> tuple[Ratios, Callable[[], Iterator[Block]]]:
    """Return θ of an estimator, and a function that reads its columns from the log in blocks."""
    form = form_of(describe(request.estimator))
    one, gamma, h = np.ones(1), request.terms.discount, request.terms.horizon
    policy, samples = request.policy, request.samples
    powers: Floats = np.power(float(gamma), np.arange(h), dtype=np.float64)
    t = np.arange(1, h + 1)

    def blocks(columns: Callable[[Steps], Floats], *roles: str) -> Callable[[], Iterator[Block]]:
        return lambda: ((steps.episodes, columns(steps)) for steps in samples.steps(policy, *roles, horizon=h))

    def weighted_return(steps: Steps) -> Floats:
        c, returns = steps.c[:, -1], (powers * steps.columns["reward"]).sum(axis=1)
        return np.stack([c * returns, c], axis=1)

    def weighted_rewards(steps: Steps) -> Floats:
        return np.hstack([steps.c * steps.columns["reward"], steps.c])

    def doubly_robust(steps: Steps) -> Floats:
        reward, q_hat, v_hat = (steps.columns[role] for role in ("reward", "q_hat", "v_hat"))
        before = np.hstack([np.ones((len(reward), 1)), steps.c[:, :-1]])
        return np.hstack([steps.c * (reward - q_hat), before * v_hat, steps.c])

    match form:
        case "averages":
            values = samples.values(policy, request.estimator)
            block = values["episode"], values["value"].to_numpy()[:, None]
            return Ratios(one, np.array([1]), np.array([0])), lambda: iter([block])
        case "weighted returns":
            return Ratios(one, np.array([1]), np.array([2])), blocks(weighted_return, "reward")
        case "weighted rewards":
            return Ratios(powers, t, h + t), blocks(weighted_rewards, "reward")
        case "doubly robust":
            before = np.concatenate([[0], 2 * h + t[:-1]])
            num, den = np.arange(1, 2 * h + 1), np.concatenate([2 * h + t, before])
            found = Ratios(np.concatenate([powers, powers]), num, den)
            return found, blocks(doubly_robust, "reward", "q_hat", "v_hat")
    raise AssertionError(f"the form {form} has no columns")
