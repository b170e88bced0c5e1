"""A tiny MDP with all of its trajectories, so that the mean of any estimator is known exactly.

Two states, two actions, three steps; an episode may end after each of them. The model R̂, P̂ of it is wrong, and Q̂ and V̂
are the values that follow from it for π1: what is unbiased with any model is unbiased with this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offpolicy.logs.block import Block
from offpolicy.protocols import Floats

HORIZON, DISCOUNT = 3, 0.75
#: The number of the state in which an episode ends.
END = 2
START = (0.625, 0.375)
PI0 = ((0.5, 0.5), (0.25, 0.75))
PI1 = ((0.75, 0.25), (0.375, 0.625))
#: P and P̂ by state, action and next state, and the rewards of these transitions; R̂ by state and action.
P = (((0.5, 0.25, 0.25), (0.125, 0.75, 0.125)), ((0.25, 0.5, 0.25), (0.5, 0.375, 0.125)))
P_HAT = (((0.25, 0.5, 0.25), (0.5, 0.25, 0.25)), ((0.5, 0.125, 0.375), (0.25, 0.25, 0.5)))
REWARD = (((1.0, -0.5, 2.0), (0.0, 1.5, -1.0)), ((-1.0, 0.5, 1.0), (2.0, 0.0, 0.5)))
R_HAT = ((0.5, 1.0), (-0.5, 0.25))
LOWEST, HIGHEST = -1.0, 2.0
#: Steps (s, a, r, s') of a trajectory.
Steps = Sequence[tuple[int, int, float, int]]


@dataclass(frozen=True, eq=False)
class Enumeration:
    """All trajectories: their probabilities under π0, lengths, the columns of their rows, and the value of π1."""

    probabilities: Floats
    lengths: NDArray[np.int64]
    columns: dict[str, Floats]
    value: float

    def block(self, needs: Sequence[str], which: NDArray[np.int64] | None = None) -> Block:
        """Return some trajectories with the rewards and the needed columns, ready for an estimator."""
        chosen = np.arange(len(self.lengths)) if which is None else which
        rows = self.rows(chosen)
        columns = {need: self.columns[need][rows] for need in dict.fromkeys(["reward", *needs])}
        for column in columns.values():
            column.flags.writeable = False
        return Block(pl.Series(chosen), self.lengths[chosen], columns, DISCOUNT, HORIZON)

    def rows(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of trajectories, one trajectory after another."""
        starts, lengths = (np.cumsum(self.lengths) - self.lengths)[chosen], self.lengths[chosen]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        found: NDArray[np.int64] = np.repeat(starts, lengths) + within
        return found

    def log(self, chosen: NDArray[np.int64], ids: NDArray[np.int64] | None = None) -> pl.DataFrame:
        """Return trajectories as a log, with ids from 0 or others."""
        lengths, rows = self.lengths[chosen], self.rows(chosen)
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        episode = np.repeat(np.arange(len(chosen)) if ids is None else ids, lengths)
        return pl.DataFrame({"episode": episode, "step": within, **{k: x[rows] for k, x in self.columns.items()}})


@cache
def enumeration(lift: float = 0.0, beside: tuple[str, ...] = ()) -> Enumeration:
    """Return all trajectories, with so much added to every reward, and random columns `beside` those of the roles."""
    every = list(_trajectories(0, None))
    q, true_q = _values(R_HAT, P_HAT), _values(_mean_rewards(lift), P)
    rows = [row for _, steps in every for row in _rows(steps, q, lift)]
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    columns |= {name: np.random.default_rng(number).uniform(0.5, 1.5, len(rows)) for number, name in enumerate(beside)}
    value = sum(START[s] * PI1[s][a] * true_q[0][s][a] for s in (0, 1) for a in (0, 1))
    lengths = np.array([len(steps) for _, steps in every])
    return Enumeration(np.array([p for p, _ in every]), lengths, columns, value)


def _trajectories(t: int, state: int | None) -> Iterator[tuple[float, Steps]]:
    """Yield how probable each way to go on from step t is, with its steps."""
    if t == HORIZON or state == END:
        yield 1.0, []
        return
    for s, first in enumerate(START) if state is None else [(state, 1.0)]:
        for a in (0, 1):
            for following in (0, 1, END):
                p = first * PI0[s][a] * P[s][a][following]
                for rest, steps in _trajectories(t + 1, following):
                    yield p * rest, [(s, a, REWARD[s][a][following], following), *steps]


def _rows(steps: Steps, q: Sequence[Sequence[Sequence[float]]], lift: float) -> Iterator[dict[str, float]]:
    for t, (s, a, reward, following) in enumerate(steps):
        goes_on = t + 1 < len(steps)
        yield {
            "reward": reward + lift,
            "behavior_prob": PI0[s][a],
            "target_prob": PI1[s][a],
            "ratio": PI1[s][a] / PI0[s][a],
            "q_hat": q[t][s][a],
            "v_hat": sum(PI1[s][b] * q[t][s][b] for b in (0, 1)),
            "r_hat": R_HAT[s][a],
            "transition_ratio": P_HAT[s][a][following] / P[s][a][following] if goes_on else 1.0,
        }


def _mean_rewards(lift: float) -> list[list[float]]:
    def mean(s: int, a: int) -> float:
        return sum(P[s][a][n] * (REWARD[s][a][n] + lift) for n in (0, 1, END))

    return [[mean(s, a) for a in (0, 1)] for s in (0, 1)]


def _values(
    reward: Sequence[Sequence[float]], transitions: Sequence[Sequence[Sequence[float]]]
) -> list[list[list[float]]]:
    """Return Q of π1 by step, state and action, from mean rewards and transitions."""
    found: list[list[list[float]]] = []
    after = [0.0, 0.0]
    for _ in range(HORIZON):
        table = [
            [reward[s][a] + DISCOUNT * sum(transitions[s][a][n] * after[n] for n in (0, 1)) for a in (0, 1)]
            for s in (0, 1)
        ]
        after = [sum(PI1[s][a] * table[s][a] for a in (0, 1)) for s in (0, 1)]
        found.insert(0, table)
    return found
