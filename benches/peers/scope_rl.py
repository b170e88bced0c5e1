"""SCOPE-RL 0.2.1: its three estimators as published, on arrays prepared in its own layout.

`estimate_interval(ci="ttest")` is its cheapest call that gives an error with the value. It is known to differ in two
ways:

- step-wis adds 1e-10 to the normaliser (a relative 1e-10 of the value), and its error is the spread of the
  normalised terms, which is not the error of a ratio;
- the half-width takes the one-sided quantile, so that a "95%" interval covers 90%. This is undone here.

It is installed without its dependencies: `scope_rl.ope` imports torch, d3rlpy, gym and plotting, but these estimators
use none of them. They are loaded past the packages' `__init__`, with empty d3rlpy and gym modules.
"""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
import scipy.stats
from agreement import agree
from definition import Estimate, Estimates
from workload import DISCOUNT

NAME = "SCOPE-RL 0.2.1"
DIFFERS = {"step-wis value": 1e-8, "step-wis std_error": float("inf")}
"""Relative distances to the exact definition that are its own, beyond rounding."""

_ALPHA = 0.05


def prepare(log: pl.DataFrame) -> dict:
    """Return arrays for two actions: the first was logged, and the other's Q̂ follows from V̂ = Σ_a π1(a) Q̂(a)."""
    p, q, v = (log[name].to_numpy() for name in ("target_prob", "q_hat", "v_hat"))
    return {
        "step_per_trajectory": log["step"].max() + 1,
        "action": np.zeros(log.height, dtype=np.int64),
        "reward": log["reward"].to_numpy(),
        "pscore": log["behavior_prob"].to_numpy(),
        "evaluation_policy_action_dist": np.column_stack([p, 1 - p]),
        "state_action_value_prediction": np.column_stack([q, (v - p * q) / (1 - p)]),
    }


def run(data: dict, discount: float) -> Estimates:
    estimators = _load_estimators()
    quantile = scipy.stats.t.ppf(1 - _ALPHA, len(data["action"]) // data["step_per_trajectory"] - 1)

    def estimate(estimator) -> Estimate:
        found = estimator().estimate_interval(**data, gamma=discount, alpha=_ALPHA, ci="ttest")
        mean, low, _ = found.values()
        return Estimate(float(mean), float((mean - low) / quantile))

    return {
        "step-is": estimate(estimators.PerDecisionImportanceSampling),
        "step-wis": estimate(estimators.SelfNormalizedPDIS),
        "dr": estimate(estimators.DoublyRobust),
    }


def check() -> None:
    agree(lambda log: run(prepare(log), DISCOUNT), DIFFERS)


def _load_estimators() -> ModuleType:
    name = "scope_rl.ope.discrete.basic_estimators"
    if name not in sys.modules:
        found = importlib.util.find_spec("scope_rl")
        if found is None:
            raise ModuleNotFoundError("No module named 'scope_rl'")
        root = Path(found.origin).parent
        _empty("gym").Env = _empty("gym").Wrapper = object
        _empty("d3rlpy")
        _empty("d3rlpy.preprocessing").ActionScaler = object
        for package in ("scope_rl.ope", "scope_rl.ope.discrete"):
            _empty(package).__path__ = [str(root.joinpath(*package.split(".")[1:]))]
        importlib.import_module(name)
    return sys.modules[name]


def _empty(name: str) -> ModuleType:
    return sys.modules.setdefault(name, ModuleType(name))
