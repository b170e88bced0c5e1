"""Small problems for `improve`, with policies of known value that are better and worse than the logged one.

walk            seven places in a row, a prize of 1 at one end, a small cost a move (`offpolicy.testing.Walk`)
three actions   one state, five steps, rewards 1, -1 and -0.01 by action, π0 = (.45, .45, .1): a model knows all
costs           a chain of six places that is left at its end, a cost of 1 a step, up to twelve steps
random          six states, three actions, random transitions and rewards of 0 or 1, eight steps
rare            one step, two actions, a reward of 1 that π0 sees once in 50 episodes
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from offpolicy.grid import Grid
from offpolicy.policies import Mixture, TabularPolicy
from offpolicy.protocols import Actions, Domain, Floats, Policy, States
from offpolicy.testing import Walk


@dataclass(frozen=True, eq=False)
class Table(Domain):
    """A tabular problem with first states, P(s'|s, a), mean rewards and π0.

    The missing probability of P(·|s, a) is that of the end of the episode. A reward is its mean or, where rewards are
    `drawn`, 0 or 1 with that mean.
    """

    name: str
    horizon: int
    discount: float
    reward_range: tuple[float, float]
    first: Floats
    moves: Floats  # (states, actions, states)
    rewards: Floats  # (states, actions)
    logged: Floats  # (states, actions)
    drawn: bool = False

    @property
    def state_columns(self) -> tuple[str, ...]:
        return ("state",)

    @property
    def actions(self) -> int:
        return self.rewards.shape[1]

    @property
    def grid(self) -> Grid:
        return Grid((len(self.first),))

    @property
    def behavior(self) -> Policy:
        return self.policy(self.logged)

    def policy(self, table: Floats) -> Policy:
        """Return the policy of a table π(a|s)."""
        return TabularPolicy(table, self.grid)

    def reset(self, n: int, rng: np.random.Generator) -> States:
        return rng.choice(len(self.first), size=n, p=self.first)[:, None]

    def step(
        self, states: States, actions: Actions, rng: np.random.Generator
    ) -> tuple[States, Floats, NDArray[np.bool_]]:
        s, a = states[:, 0].astype(int), np.asarray(actions).astype(int)
        rewards = self.rewards[s, a]
        if self.drawn:
            rewards = (rng.random(len(s)) < rewards).astype(float)
        following = (rng.random((len(s), 1)) > np.cumsum(self.moves[s, a], axis=1)).sum(axis=1)
        ended = following >= len(self.first)
        return np.where(ended, 0, following)[:, None], rewards, ended

    def value(self, policy: Policy) -> float:
        """Return V of a policy by backward induction."""
        states = np.arange(len(self.first))[:, None]
        v = np.zeros(len(self.first))
        for t in reversed(range(self.horizon)):
            q = self.rewards + self.discount * self.moves @ v
            v = (policy.probabilities(states, t) * q).sum(axis=1)
        return float(self.first @ v)


@dataclass(frozen=True)
class Problem:
    """A domain, the candidates, and the true values of these and of π0."""

    name: str
    domain: Domain
    candidates: Mapping[str, Policy]
    values: Mapping[str, float]
    behavior: float


def problems() -> list[Problem]:
    """Return all problems, each with candidates near π0 and far from it, some better and some worse."""
    return [_walk(), _of(_three_actions()), _of(_costs()), _of(_random()), _of(_rare())]


def _walk() -> Problem:
    walk = Walk()
    right = walk.policies["eager"]
    left = TabularPolicy(np.tile([0.8, 0.0, 0.2], (7, 1)), walk.grid)
    found = {f"{name} {alpha}": Mixture(policy, walk.behavior, alpha)
             for name, policy in (("right", right), ("left", left)) for alpha in (0.3, 0.6, 0.9)}  # fmt: skip
    values = {name: float(walk.exact_values(policy)[1][0, 3]) for name, policy in found.items()}
    return Problem("walk", walk, found, values, float(walk.exact_values(walk.behavior)[1][0, 3]))


def _of(domain: Table) -> Problem:
    """Make a problem whose candidates are π0 mixed with the best or worst policy or both, and one without states."""
    tables = []
    for best in (np.max, np.min):
        v = np.zeros(len(domain.first))
        for _ in range(domain.horizon):
            q = domain.rewards + domain.discount * domain.moves @ v
            v = best(q, axis=1)
        tables.append((q == v[:, None]) / (q == v[:, None]).sum(axis=1, keepdims=True))
    good, bad = tables
    blends = {f"{name} {share}": (1 - share) * domain.logged + share * table
              for name, table in (("good", good), ("bad", bad)) for share in (0.1, 0.3, 0.8)}  # fmt: skip
    blends["near"] = 0.9 * domain.logged + 0.045 * good + 0.055 * bad
    blends["odd"] = np.tile([0.05, 0.05, 0.9][-domain.actions :], (len(domain.first), 1))
    blends["odd"] /= blends["odd"].sum(axis=1, keepdims=True)
    found = {name: domain.policy(table) for name, table in blends.items()}
    values = {name: domain.value(policy) for name, policy in found.items()}
    return Problem(domain.name, domain, found, values, domain.value(domain.behavior))


def _three_actions() -> Table:
    logged, rewards = np.array([[0.45, 0.45, 0.1]]), np.array([[1.0, -1.0, -0.01]])
    return Table("three actions", 5, 1.0, (-1.0, 1.0), np.ones(1), np.ones((1, 3, 1)), rewards, logged)


def _costs() -> Table:
    places = 6
    moves = np.zeros((places, 2, places))
    for place in range(places):
        moves[place, 0, max(place - 1, 0)] = 1.0
        if place + 1 < places:
            moves[place, 1, place + 1] = 1.0
    first = np.array([0, 0, 0, 1.0, 0, 0])
    return Table("costs", 12, 1.0, (-1.0, 0.0), first, moves, -np.ones((places, 2)), np.full((places, 2), 0.5))


def _random() -> Table:
    rng = np.random.default_rng(12)
    moves, rewards = rng.dirichlet(np.full(6, 0.5), size=(6, 3)), rng.random((6, 3))
    logged = 0.5 * rng.dirichlet(np.ones(3), size=6) + 0.5 / 3
    return Table("random", 8, 0.95, (0.0, 1.0), np.full(6, 1 / 6), moves, rewards, logged, drawn=True)


def _rare() -> Table:
    rewards, logged = np.array([[0.01, 0.06]]), np.array([[0.8, 0.2]])
    return Table("rare", 1, 1.0, (0.0, 1.0), np.ones(1), np.ones((1, 2, 1)), rewards, logged, drawn=True)
