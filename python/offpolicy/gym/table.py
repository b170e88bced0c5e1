"""An environment that tells its dynamics: P[s][a] lists (probability, next state, reward, ended).

Q_t(s, a) = Σ_k p_k (r_k + γ (1 - ended_k) V_{t+1}(s'_k)),   V_t(s) = Σ_a π_t(a|s) Q_t(s, a),   V_H = 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offpolicy.errors import UsageError
from offpolicy.grid import Grid
from offpolicy.policies import Uniform
from offpolicy.probabilities import TOLERANCE
from offpolicy.protocols import Actions, Domain, Floats, Policy, States
from offpolicy.simulation import draw

#: Gymnasium's own environments do nothing that the table does not say, and these wrappers change nothing of it.
TRUSTED = "gymnasium.envs.toy_text."
HARMLESS = ("TimeLimit", "OrderEnforcing", "PassiveEnvChecker")


@dataclass(frozen=True, eq=False)
class TransitionTable:
    """Every outcome of every state and action: arrays of (states, actions, outcomes), filled up with probability 0."""

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


def has_table(env: Any) -> bool:
    """True where the table says all that the environment does."""
    inner = env
    while inner is not env.unwrapped:
        if type(inner).__name__ not in HARMLESS:
            return False
        inner = inner.env
    fickle = getattr(inner, "fickle_passenger", False)  # beside the table
    return hasattr(inner, "P") and type(inner).__module__.startswith(TRUSTED) and not fickle


def read_table(env: Any, name: str) -> TransitionTable:
    """The table of an environment as arrays."""
    inner = env.unwrapped
    if not hasattr(inner, "P") or not hasattr(inner, "initial_state_distrib"):
        raise UsageError(f"{name} has no transition table P with an initial_state_distrib: use table=False")
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
        raise UsageError(f"the probabilities in P[{state}][{action}] of {name} do not add to 1")
    return TransitionTable(probability, next_state, reward, ended, np.asarray(inner.initial_state_distrib, dtype=float))


class TableDomain(Domain):
    """A domain whose dynamics are a table, so that its values are known exactly.

    >>> import offpolicy as op
    >>> cliff = op.from_gymnasium("CliffWalking-v1", horizon=20)
    >>> always_up = op.policies.FromCallable(lambda states, step: [[1.0, 0.0, 0.0, 0.0]] * len(states))
    >>> cliff.value(always_up)
    -20.0
    """

    state_columns = ("state",)

    def __init__(
        self,
        name: str,
        horizon: int,
        discount: float,
        reward_range: tuple[float, float],
        table: TransitionTable,
        behavior: Policy | None = None,
    ) -> None:
        """Keeps the table as the model of the domain; π0 is uniform unless given."""
        self.name, self.horizon, self.discount, self.reward_range = name, horizon, discount, reward_range
        self.table = table
        states, self.actions, _ = table.probability.shape
        self.grid = Grid((states,))
        self._behavior = Uniform(self.actions) if behavior is None else behavior

    @property
    def behavior(self) -> Policy:
        """π0."""
        return self._behavior

    def reset(self, n: int, rng: np.random.Generator) -> States:
        """First states by their probabilities."""
        return draw(np.broadcast_to(self.table.start, (n, self.grid.cells)), rng)[:, None]

    def step(
        self, states: States, actions: Actions, rng: np.random.Generator
    ) -> tuple[States, Floats, NDArray[np.bool_]]:
        """An outcome of the table for each row."""
        table, state = self.table, states[:, 0]
        outcome = draw(table.probability[state, actions], rng)
        cell = state, actions, outcome
        return table.next_state[cell][:, None], table.reward[cell], table.ended[cell]

    def transition_probability(self, states: States, actions: Actions, next_states: States) -> Floats:
        """P(s'|s, a) of an episode that goes on, n values."""
        table, state = self.table, states[:, 0]
        cell = state.astype(np.int64), actions
        leads = (table.next_state[cell] == next_states) & ~table.ended[cell]
        found: Floats = np.where(leads, table.probability[cell], 0.0).sum(axis=1)
        return found

    def exact_values(self, policy: Policy) -> tuple[Floats, Floats]:
        """Q_t and V_t of a policy, (horizon, states, actions) and (horizon, states), by backward induction."""
        table, states = self.table, np.arange(self.grid.cells)[:, None]
        q = np.zeros((self.horizon, self.grid.cells, self.actions))
        v = np.zeros((self.horizon + 1, self.grid.cells))
        for t in reversed(range(self.horizon)):
            following = np.where(table.ended, 0.0, v[t + 1][table.next_state])
            q[t] = (table.probability * (table.reward + self.discount * following)).sum(axis=2)
            v[t] = (policy.probabilities(states, t) * q[t]).sum(axis=1)
        return q, v[:-1]

    def value(self, policy: Policy) -> float:
        """What a policy earns from the first states on."""
        return float(self.table.start @ self.exact_values(policy)[1][0])
