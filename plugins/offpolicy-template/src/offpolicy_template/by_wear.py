"""A model of the machine that counts what followed each wear and action:

    R̂(w, a) = mean reward,    P̂(w'|w, a) = share of the next wear,    Q̂_t = R̂ + γ Σ_w' P̂ V̂_{t+1},    V̂_t = Σ_a π Q̂_t

The values of several policies are in one array, so that all of them are looked up for all rows of a log at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import offpolicy as op
from numpy.typing import NDArray
from offpolicy.logs.transitions import transitions
from offpolicy.policies import TabularPolicy
from offpolicy.protocols import Actions, Floats, LoggedRows, Policy, Question, Setting, States, Step

from offpolicy_template.machine import WORN_OUT

LEVELS = WORN_OUT + 1
SWEEPS = 1000


@dataclass(frozen=True)
class ByWear:
    """A fitter that counts batch by batch; an unseen pair has the lowest reward and leads back to its wear.

    >>> import offpolicy as op
    >>> from offpolicy_template import ByWear, Machine
    >>> machine = Machine()
    >>> model = ByWear().fit(machine.simulate(machine.behavior, 1000, seed=0), machine)
    >>> model.optimal_policy().table[:, 1]  # from which wear on to repair
    array([0., 0., 0., 1., 1., 1.])
    """

    def fit(self, log: Any, domain: Setting) -> WearModel:
        """Count every step of the log once."""
        shape = (LEVELS, domain.actions)
        count, reward, known = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        followed = np.zeros((*shape, LEVELS))
        for batch in transitions(log, domain):
            pair = (batch.states[:, 0].astype(np.int64), batch.actions)
            np.add.at(count, pair, 1)
            np.add.at(reward, pair, batch.rewards)
            np.add.at(known, pair, batch.known)
            goes_on = batch.known & ~batch.terminal
            after = batch.next_states[goes_on, 0].astype(np.int64)
            np.add.at(followed, (pair[0][goes_on], pair[1][goes_on], after), 1)
        r_hat = np.where(count > 0, reward / np.maximum(count, 1), domain.reward_range[0])
        stays = np.broadcast_to(np.eye(LEVELS)[:, None, :], followed.shape)
        p_hat = np.where(known[..., None] > 0, followed / np.maximum(known, 1)[..., None], stays)
        return WearModel(r_hat, p_hat, domain)


@dataclass(frozen=True, eq=False)
class WearModel:
    """The model R̂, (wear, actions), and P̂, (wear, actions, wear); P̂ adds to 1 less the probability of the end."""

    r_hat: Floats
    p_hat: Floats
    domain: Setting

    def values(self, policy: Policy, horizon: int, discount: float) -> WearValues:
        """Return the values of one policy."""
        return self.values_of([policy], horizon, discount)[0]

    def values_of(self, policies: Sequence[Policy], horizon: int, discount: float) -> list[WearValues]:
        """Return the values of several policies, computed together backwards from the horizon."""
        wear = np.arange(LEVELS)[:, None]
        q = np.zeros((len(policies), horizon, *self.r_hat.shape))
        v = np.zeros((len(policies), horizon + 1, LEVELS))
        for t in reversed(range(horizon)):
            pi = np.stack([policy.probabilities(wear, t) for policy in policies])
            q[:, t] = self.r_hat + discount * np.einsum("wax,px->pwa", self.p_hat, v[:, t + 1])
            v[:, t] = (pi * q[:, t]).sum(axis=2)
        return [WearValues(self.r_hat, q, v, number) for number in range(len(policies))]

    def optimal_policy(self, maximize: bool = True) -> TabularPolicy:
        """Return the best stationary policy, or the worst, by value iteration over legal actions."""
        sign, legal = 1.0 if maximize else -1.0, self.domain.legal(np.arange(LEVELS)[:, None])
        discount = min(self.domain.discount, 1 - 1 / self.domain.horizon)
        v = np.zeros(LEVELS)
        for _ in range(SWEEPS):
            q = np.where(legal, sign * (self.r_hat + discount * self.p_hat @ v), -np.inf)
            v = sign * q.max(axis=1)
        return TabularPolicy(np.eye(self.domain.actions)[q.argmax(axis=1)], op.Grid((LEVELS,)))


@dataclass(frozen=True, eq=False)
class WearValues:
    """The values of one policy, `number` of those that share the tables `q` and `v`."""

    reward: Floats
    q: Floats  # policy, step, wear, action
    v: Floats  # policy, step, wear
    number: int

    def q_hat(self, states: States, actions: Actions, step: Step) -> Floats:
        """Return Q̂(s, a), n values."""
        found: Floats = self.q[self.number, step, _wear(states), actions]
        return found

    def v_hat(self, states: States, step: Step) -> Floats:
        """Return V̂(s), n values."""
        found: Floats = self.v[self.number, step, _wear(states)]
        return found

    def r_hat(self, states: States, actions: Actions) -> Floats:
        """Return R̂(s, a), n values."""
        found: Floats = self.reward[_wear(states), actions]
        return found

    def lookup_many(self, questions: Sequence[Question], rows: LoggedRows) -> list[dict[str, Floats]]:
        """Answer all questions before the first about other tables, by one look-up per table."""
        numbers = []
        for question in questions:
            if not (isinstance(question.values, WearValues) and question.values.q is self.q):
                break
            numbers.append(question.values.number)
        wear, steps, actions = _wear(rows.states), rows.steps, rows.actions
        q, v, r = self.q[:, steps, wear, actions], self.v[:, steps, wear], self.reward[wear, actions]
        return [{"q_hat": q[number], "v_hat": v[number], "r_hat": r} for number in numbers]


def _wear(states: States) -> NDArray[np.int64]:
    return states[:, 0].astype(np.int64)
