"""The experiment of Thomas & Brunskill (2016): how far `reg`, `wdr` and `magic` are from the truth in three domains.

ModelFail: two steps in places that look alike. The first action decides the reward of the second step, +1 or -1; a
model of what is seen cannot know that. ModelWin: from s1 the actions lead to s2, which earns 1, with probability 0.4
and 0.6, otherwise to s3, which costs 1; from there back to s1. A model of three states is right, and 20 steps of
ratios are many. Hybrid: ModelFail, then 18 steps of ModelWin. The behaviour policy takes the first action with
probability 0.88 in ModelFail, 0.73 in s1 and 0.5 elsewhere; the target policy takes the second so often. Models are
fitted to the log that they evaluate.
"""

from dataclasses import dataclass

import numpy as np
import offpolicy as op
import polars as pl
from offpolicy.policies import FromCallable
from offpolicy.protocols import Domain, Policy

DARK, S1, S2, S3 = range(4)
FIRST_ACTION = np.array([0.88, 0.73, 0.5, 0.5])
ESTIMATORS = ("reg", "wdr", "magic")


@dataclass(frozen=True)
class Hybrid(Domain):
    """The place that is seen, and what is not: whether the first step took the first action (1) or the second (2)."""

    name: str = "Hybrid"
    horizon: int = 20
    start: int = DARK

    state_columns = ("seen", "unseen")
    actions = 2
    discount = 1.0
    reward_range = (-1.0, 1.0)

    @property
    def behavior(self) -> Policy:
        return policy(FIRST_ACTION)

    @property
    def target(self) -> Policy:
        return policy(1 - FIRST_ACTION)

    @property
    def truth(self) -> float:
        """The value of the target policy."""
        dark = self.start == DARK
        visits_to_s1 = -(-(self.horizon - 2 * dark) // 2)
        return (0.12 - 0.88) * dark + visits_to_s1 * (0.73 - 0.27) * (0.6 - 0.4)

    def reset(self, n, rng):
        return np.tile([self.start, 0], (n, 1))

    def step(self, states, actions, rng):
        seen, unseen = states.T
        lucky = rng.random(len(states)) < np.where(actions == 0, 0.4, 0.6)
        entered, leaves = (seen == DARK) & (unseen == 0), (seen == DARK) & (unseen > 0)
        rewards = np.select([leaves, seen == S1], [np.where(unseen == 1, 1.0, -1.0), np.where(lucky, 1.0, -1.0)], 0.0)
        following = np.select([entered, seen == S1], [DARK, np.where(lucky, S2, S3)], S1)
        done = leaves & (self.horizon == 2)
        return np.stack([following, np.where(entered, actions + 1, 0)], axis=1), rewards, done


MODEL_FAIL = Hybrid("ModelFail", horizon=2)
MODEL_WIN = Hybrid("ModelWin", start=S1)
DOMAINS = (MODEL_FAIL, MODEL_WIN, Hybrid())


def policy(first_action: np.ndarray) -> Policy:
    table = np.stack([first_action, 1 - first_action], axis=1)
    return FromCallable(lambda states, step: table[states[:, 0]])


def seen(states):
    return states[:, 0]


def logs(domain: Hybrid, sizes: list[int], seed: int) -> list[pl.DataFrame]:
    """The first episodes of one log, for each size, with the columns of the target and of a model fitted to them."""
    log = domain.simulate(domain.behavior, max(sizes), seed)
    fitter, found = op.fitter("tabular", aggregate=seen, cells=4), []
    for size in sizes:
        data = log.filter(log["episode"] < size)
        values = fitter.fit(data, domain).values(domain.target, domain.horizon, domain.discount)
        found.append(op.annotate(data, domain.target, values, op.Columns(state=domain.state_columns), threads=1))
    return found


def estimates(domain: Hybrid, log: pl.DataFrame) -> list[op.Estimate]:
    """Of ESTIMATORS."""
    ev = op.evaluate(log, horizon=domain.horizon, estimators=ESTIMATORS, threads=1)
    return [ev[name] for name in ESTIMATORS]


def squared_errors(domain: Hybrid, sizes: list[int], runs: int, seed: int = 0) -> np.ndarray:
    """(runs, sizes, estimators)"""
    each = [logs(domain, sizes, seed + k) for k in range(runs)]
    values = [[[of.value for of in estimates(domain, log)] for log in one] for one in each]
    return (np.array(values) - domain.truth) ** 2
