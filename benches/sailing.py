"""The paper's task on Sailing: a kernel model of 2500 trajectories, and the values of 4 mixtures of a good policy."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import offpolicy as op
import polars as pl
from offpolicy.policies import Mixture, TabularPolicy
from offpolicy_sailing import Sailing
from offpolicy_sailing.exact import Exact

BANDWIDTH = 0.25
ALPHAS = (0.0, 0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Task:
    """A log, and the policies on the domain's grid."""

    domain: Sailing
    log: pl.DataFrame
    policies: tuple[TabularPolicy, ...]


@cache
def task(episodes: int, horizon: int = 100, seed: int = 0) -> Task:
    domain = Sailing(horizon=horizon)
    exact = Exact(domain)
    best = exact.optimal_policy(domain.discount)
    mixtures = (Mixture(best, domain.behavior, alpha) for alpha in ALPHAS)
    tables = tuple(TabularPolicy(mixture.probabilities(exact.states, 0), domain.grid) for mixture in mixtures)
    return Task(domain, domain.simulate(domain.behavior, n=episodes, seed=seed), tables)


def ours(task: Task) -> np.ndarray:
    """Return V̂^h of each policy for h = 0, …, H as an array of (policies, H + 1, states)."""
    model = op.fitter("kernel", bandwidth=BANDWIDTH).fit(task.log, task.domain)
    return np.stack(
        [values.table for values in model.values_of(task.policies, task.domain.horizon, task.domain.discount)]
    )


def agree(run) -> None:
    """Fail unless a contestant finds our values on a small log."""
    small = task(episodes=60, horizon=5)
    found, expected = run(small), ours(small)
    if not np.allclose(found, expected, rtol=1e-10, atol=1e-10):
        raise AssertionError(f"values differ by up to {np.abs(found - expected).max()}")
