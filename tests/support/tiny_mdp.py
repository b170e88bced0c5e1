"""Small Markov decision processes in rational numbers, and what is true of them by enumeration."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import polars as pl
from offpolicy.protocols import Domain

STATES, ACTIONS = 3, 2


def random_process(rng):
    """Rewards (S, A) and transitions (S, A, S + 1), the last one the end, in sixteenths."""
    rewards = [[Fraction(int(rng.integers(-32, 32)), 16) for _ in range(ACTIONS)] for _ in range(STATES)]
    transitions = []
    for _ in range(STATES):
        rows = []
        for _ in range(ACTIONS):
            cuts = sorted(int(cut) for cut in rng.integers(0, 17, size=STATES))
            rows.append([Fraction(b - a, 16) for a, b in zip([0, *cuts], [*cuts, 16], strict=True)])
        transitions.append(rows)
    return rewards, transitions


def random_policy(rng, horizon=None):
    """π(0|s) in eighths, as [s][a] or [t][s][a]."""

    def table():
        first = [Fraction(int(rng.integers(0, 9)), 8) for _ in range(STATES)]
        return [[p, 1 - p] for p in first]

    return table() if horizon is None else [table() for _ in range(horizon)]


def value_by_paths(rewards, transitions, policy_at, start, step, horizon, discount):
    """V(start) from `step` on: the sum over all paths of probability times reward; no recursion over values."""
    total = Fraction(0)
    paths = [(Fraction(1), start)]
    for t in range(step, horizon):
        following = []
        for probability, s in paths:
            for a in range(ACTIONS):
                taken = probability * policy_at(t)[s][a]
                total += taken * discount ** (t - step) * rewards[s][a]
                following += [(taken * transitions[s][a][n], n) for n in range(STATES) if transitions[s][a][n]]
        paths = [(p, s) for p, s in following if p]
    return total


def deterministic_policies(legal):
    """Every choice of a legal action in each state."""
    return itertools.product(*[[a for a in range(ACTIONS) if legal[s][a]] for s in range(STATES)])


def discounted_value(rewards, transitions, actions, discount):
    """V of a deterministic policy without a horizon: (I - γP)⁻¹ R by Cramer's rule in rationals."""
    rows = [
        [Fraction(int(s == n)) - discount * transitions[s][actions[s]][n] for n in range(STATES)] for s in range(STATES)
    ]
    right = [rewards[s][actions[s]] for s in range(STATES)]
    whole = _determinant(rows)
    return [
        _determinant([[right[i] if j == s else rows[i][j] for j in range(STATES)] for i in range(STATES)]) / whole
        for s in range(STATES)
    ]


def _determinant(m):
    if len(m) == 1:
        return m[0][0]
    minor = lambda j: [[row[k] for k in range(len(m)) if k != j] for row in m[1:]]  # noqa: E731
    return sum((-1) ** j * m[0][j] * _determinant(minor(j)) for j in range(len(m)))


def dense(rewards, transitions):
    """As floats, without the end."""
    return np.array(rewards, dtype=float), np.array(transitions, dtype=float)[:, :, :STATES]


class TinyDomain(Domain):
    """A random process to simulate; it starts in state 0."""

    name = "tiny"
    state_columns = ("state",)
    actions = ACTIONS
    horizon = 5
    discount = 0.9

    def __init__(self, seed=0):
        from offpolicy.policies import Uniform

        self.rewards, self.transitions = random_process(np.random.default_rng(seed))
        flat = [float(r) for row in self.rewards for r in row]
        self.reward_range = (min(flat), max(flat))
        self.uniform = Uniform(ACTIONS)

    @property
    def behavior(self):
        return self.uniform

    def reset(self, n, rng):
        return np.zeros((n, 1), dtype=np.int64)

    def step(self, states, actions, rng):
        rewards, _ = dense(self.rewards, self.transitions)
        cumulative = np.cumsum(np.array(self.transitions, dtype=float), axis=2)[states[:, 0], actions]
        following = (rng.random((len(states), 1)) >= cumulative[:, :-1]).sum(axis=1)
        done = following == STATES
        return np.where(done, 0, following)[:, None], rewards[states[:, 0], actions], done


def tiny_log(seed=0, episodes=300) -> pl.DataFrame:
    domain = TinyDomain(seed)
    return domain.simulate(domain.behavior, episodes, seed)
