"""Diagnostics that tell whether weights can be trusted, from the same pass that computes the estimates.

`policies` has one row per target policy:

    ess, largest_share, mean_weight   of the final weights c_H: (Σc)²/Σc², max c/Σc, Σc/n (1 in expectation)
    predicted_ess                     the ESS predicted by the ratios of single steps (`predicted`)
    predicted_leaning                 γ²/n for the skewness γ predicted in the same way, in logs of several steps
    enough_alpha                      the least share of π0 in a mixture for which these two are good
    carried_until                     the last step t with ESS_t of at least 100
    k_hat, k_limit                    the shape of the weights' tail (`pareto`), and its largest good value
    mean_ratio                        mean of ρ_t over all steps (at most 1 in expectation)
    log10_e_value                     evidence that E[ρ_t] > 1, so that logged probabilities are wrong (`e_value`)
    control_variate, control_error    mean of Σγ^{t−1}(c_t Q̂ − c_{t−1} V̂), 0 in expectation, and its standard error
    variance_ratio                    variance of step-is over that of dr
    leader                            the episode with the largest weight
    cut_off_bias                      the most by which the missing rewards of truncated episodes can move an estimate

`steps` has one row per policy and step t: `running` episodes, `ess`, `predicted_ess`, `mean_weight`, `mean_ratio`,
`mean_squared_ratio`. `leverage` tells how much of an estimate's variance one trajectory has, how skewed the
trajectories' values are, and how estimates move without the largest weights. `lengths` has the number of episodes of
each length.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from offpolicy import _core
from offpolicy.diagnostics import e_value, leverage, pareto, predicted
from offpolicy.evaluation.outcome import Found, Outcome
from offpolicy.evaluation.verdict import ENOUGH, HEAVY
from offpolicy.protocols import Floats

#: The largest number of steps in a JSON document.
MOST_STEPS = 200

POLICIES = {
    "policy": pl.String,
    "ess": pl.Float64,
    "largest_share": pl.Float64,
    "mean_weight": pl.Float64,
    "predicted_ess": pl.Float64,
    "predicted_leaning": pl.Float64,
    "enough_alpha": pl.Float64,
    "carried_until": pl.Int64,
    "k_hat": pl.Float64,
    "k_limit": pl.Float64,
    "mean_ratio": pl.Float64,
    "log10_e_value": pl.Float64,
    "control_variate": pl.Float64,
    "control_error": pl.Float64,
    "variance_ratio": pl.Float64,
    "leader": pl.String,
    "cut_off_bias": pl.Float64,
}
STEPS = {
    "policy": pl.String,
    "step": pl.Int64,
    "running": pl.Int64,
    "ess": pl.Float64,
    "predicted_ess": pl.Float64,
    "mean_weight": pl.Float64,
    "mean_ratio": pl.Float64,
    "mean_squared_ratio": pl.Float64,
}
#: The columns of `steps` that the core computes, in its order.
BY_STEP = ("ess", "mean_weight", "mean_ratio", "mean_squared_ratio")


@dataclass(frozen=True)
class Diagnostics:
    """The four tables for the named policies, made on demand; `names` maps numbers of policies in the core to names."""

    outcome: Outcome = field(repr=False)
    names: dict[int, str]

    @cached_property
    def policies(self) -> pl.DataFrame:
        """One row per policy."""
        return pl.DataFrame([_policy(*item, self.outcome, self.lengths) for item in self._weights], POLICIES)

    @cached_property
    def steps(self) -> pl.DataFrame:
        """One row per policy and step."""
        found = [_steps(*item, self.outcome.episodes, self.lengths) for item in self._weights]
        return pl.concat([pl.DataFrame(schema=STEPS), *found])

    @cached_property
    def leverage(self) -> pl.DataFrame:
        """One row per policy and estimator."""
        rows = [row for row in self.outcome.estimates if row.policy in self.names]
        moved = [_moved(row, self.names[row.policy], self.outcome) for row in rows]
        return pl.DataFrame(moved, leverage.SCHEMA)

    @cached_property
    def lengths(self) -> pl.DataFrame:
        """One row per length."""
        return pl.DataFrame(self.outcome.lengths, {"length": pl.Int64, "episodes": pl.Int64}, orient="row")

    @property
    def _weights(self) -> list[tuple[str, _core.WeightsOutcome]]:
        weights = self.outcome.weights
        return [(name, weights[number]) for number, name in self.names.items()]

    def to_dict(self) -> dict[str, Any]:
        """Return the tables ready for JSON; of many steps only some, which lie closer together in the beginning."""
        return {
            "diagnostics": self.policies.to_dicts(),
            "by_step": self.some_steps(MOST_STEPS).to_dicts(),
            "leverage": self.leverage.to_dicts(),
            "lengths": self.length_summary(),
        }

    def some_steps(self, most: int) -> pl.DataFrame:
        """Return at most so many steps of each policy, with the first and the last among them."""
        longest = int(self.lengths["length"][-1])
        if longest <= most:
            return self.steps
        some = np.geomspace(1, longest, most).round().astype(np.int64)
        return self.steps.filter(pl.col("step").is_in(np.unique(some)))

    def length_summary(self) -> dict[str, float]:
        """Return the shortest, median, mean and longest length of an episode."""
        length, episodes = (self.lengths[name].to_numpy() for name in ("length", "episodes"))
        at = int(np.searchsorted(np.cumsum(episodes), episodes.sum() / 2))
        mean = float(length @ episodes / episodes.sum())
        return {"shortest": int(length[0]), "median": int(length[at]), "mean": mean, "longest": int(length[-1])}


def _policy(name: str, weights: _core.WeightsOutcome, outcome: Outcome, lengths: pl.DataFrame) -> dict[str, Any]:
    n, found = outcome.episodes, weights.diagnosis
    row: dict[str, Any] = {"policy": name, "mean_weight": weights.mean}
    row |= {"ess": weights.ess, "largest_share": weights.largest_share}
    if found is None:
        return row
    carried = np.flatnonzero(found.ess >= ENOUGH)
    mean, error = found.control or (None, None)
    running, v = _running(n, lengths) / n, _spread(found)
    return row | {
        "predicted_ess": float(predicted.sizes(n, running, v)[-1]),
        "predicted_leaning": predicted.leaning(n, running, v),
        "enough_alpha": predicted.enough_alpha(n, running, v, ENOUGH),
        "carried_until": int(carried[-1]) + 1 if len(carried) else None,
        "k_hat": pareto.shape(found.largest),
        "k_limit": HEAVY,
        "mean_ratio": None if found.excess is None else 1 + found.excess / outcome.steps,
        "log10_e_value": e_value.log10_e_value(found.excess, found.squared_excess),
        "control_variate": mean and mean.value,
        "control_error": error and error.value,
        "variance_ratio": found.variance_ratio,
        "leader": str(found.leaders[0].episode) if found.leaders else None,
        "cut_off_bias": found.cut_off_bias,
    }


def _steps(name: str, weights: _core.WeightsOutcome, n: int, lengths: pl.DataFrame) -> pl.DataFrame:
    found = weights.diagnosis
    if found is None:
        return pl.DataFrame(schema=STEPS)
    running = _running(n, lengths)
    columns: dict[str, Any] = {key: pl.Series(values=getattr(found, key), nan_to_null=True) for key in BY_STEP}
    columns["predicted_ess"] = predicted.sizes(n, running / n, _spread(found))
    named = {"policy": name, "step": range(1, len(running) + 1), "running": running} | columns
    return pl.DataFrame({key: named[key] for key in STEPS}, STEPS)


def _running(n: int, lengths: pl.DataFrame) -> npt.NDArray[np.int64]:
    """Return how many episodes run at each step."""
    ended = np.zeros(int(lengths["length"][-1]) + 1, dtype=np.int64)
    ended[lengths["length"].to_numpy()] = lengths["episodes"].to_numpy()
    running: npt.NDArray[np.int64] = n - np.cumsum(ended)[:-1]
    return running


def _spread(found: _core.Diagnosis) -> Floats:
    return predicted.spread(found.mean_ratio, found.mean_squared_ratio)


def _moved(row: Found, name: str, outcome: Outcome) -> dict[str, Any]:
    weights = outcome.weights[row.policy]
    leaders = weights.diagnosis.leaders if weights.diagnosis else []
    return leverage.moved(name, row, outcome.episodes, weights.mean, leaders)
