"""Environments that publish their dynamics: P[s][a] lists (probability, next state, reward, ended)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offpolicy._util.probabilities import TOLERANCE
from offpolicy.errors.kinds.of_simulation import no_transition_table, table_does_not_add
from offpolicy.policies import Legal
from offpolicy.protocols import Actions, Floats, Policy, States
from offpolicy.simulation.mdp_domain import MDPDomain
from offpolicy.simulation.rollouts import draw
from offpolicy.theory.mdp import MDP

#: The tables of Gymnasium's own environments say all that they do, and these wrappers do not change it.
TRUSTED = "gymnasium.envs.toy_text."
HARMLESS = ("TimeLimit", "OrderEnforcing", "PassiveEnvChecker")


@dataclass(frozen=True, eq=False)
class TransitionTable:
    """Arrays (states, actions, outcomes) of every outcome; shorter lists are padded with outcomes of probability 0."""

    probability: Floats
    next_state: NDArray[np.int64]
    reward: Floats
    ended: NDArray[np.bool_]
    start: Floats  # probability of each first state

    @property
    def reward_range(self) -> tuple[float, float]:
        """The lowest and the highest reward that can happen."""
        possible = self.reward[self.probability > 0]
        return float(possible.min()), float(possible.max())

    def mdp(self, horizon: int, discount: float) -> MDP:
        """Return the table as an MDP with mean rewards given s', and one more state for episodes that have ended."""
        states, actions, _ = self.probability.shape
        then = np.where(self.ended, states, self.next_state)
        s, a = np.ogrid[:states, :actions]
        p, earned = np.zeros((2, states + 1, actions, states + 1))
        for k in range(then.shape[2]):
            p[s, a, then[:, :, k]] += self.probability[:, :, k]
            earned[s, a, then[:, :, k]] += self.probability[:, :, k] * self.reward[:, :, k]
        rewards = np.divide(earned, p, out=np.zeros_like(p), where=p > 0)
        return MDP(p, rewards, np.append(self.start, 0.0), horizon, discount, terminal=[states])


def has_table(env: Any) -> bool:
    """Return whether the table says all that the environment does."""
    inner = env
    while inner is not env.unwrapped:
        if type(inner).__name__ not in HARMLESS:
            return False
        inner = inner.env
    fickle = getattr(inner, "fickle_passenger", False)  # this option acts outside the table
    return hasattr(inner, "P") and type(inner).__module__.startswith(TRUSTED) and not fickle


def read_table(env: Any, name: str) -> TransitionTable:
    """Read the table of an environment into arrays."""
    inner = env.unwrapped
    if not hasattr(inner, "P") or not hasattr(inner, "initial_state_distrib"):
        raise no_transition_table(env=name)
    states, actions = len(inner.P), int(env.action_space.n)
    most = max(len(outcomes) for row in inner.P.values() for outcomes in row.values())
    shape = (states, actions, most)
    probability, reward = np.zeros(shape), np.zeros(shape)
    next_state, ended = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool)
    for state, row in inner.P.items():
        for action, outcomes in row.items():
            for k, outcome in enumerate(outcomes):
                cell = state, action, k
                probability[cell], next_state[cell], reward[cell], ended[cell] = outcome
    if not (np.abs(probability.sum(axis=2) - 1) <= TOLERANCE).all():
        state, action = (int(i) for i in np.argwhere(np.abs(probability.sum(axis=2) - 1) > TOLERANCE)[0])
        raise table_does_not_add(state=state, action=action, env=name)
    return TransitionTable(probability, next_state, reward, ended, np.asarray(inner.initial_state_distrib, dtype=float))


class TableDomain(MDPDomain):
    """A domain whose dynamics are a table, so that its values are known exactly.

    Whether the episode ends is told by the outcome and not by its next state. In the arrays of the MDP, outcomes that
    end the episode therefore lead to one additional state.

    >>> import offpolicy as op
    >>> cliff = op.from_gymnasium("CliffWalking-v1", horizon=20)
    >>> always_up = op.policies.FromCallable(lambda states, step: [[1.0, 0.0, 0.0, 0.0]] * len(states))
    >>> cliff.value(always_up)
    -20.0
    """

    def __init__(
        self,
        name: str,
        horizon: int,
        discount: float,
        reward_range: tuple[float, float],
        table: TransitionTable,
        behavior: Policy | None = None,
        legal: Legal | None = None,
    ) -> None:
        """Keep the table and its MDP; π0 is uniform unless given."""
        self.table = table
        states = len(table.start)
        super().__init__(table.mdp(horizon, discount), states, name, legal, behavior, reward_range)

    def step(
        self, states: States, actions: Actions, rng: np.random.Generator
    ) -> tuple[States, Floats, NDArray[np.bool_]]:
        """Draw one outcome of the table per row."""
        table, state = self.table, states[:, 0]
        outcome = draw(table.probability[state, actions], rng)
        cell = state, actions, outcome
        return table.next_state[cell][:, None], table.reward[cell], table.ended[cell]
