"""Fitted Q evaluation: one regression for each number h of remaining steps, from the last step backwards.

    Q̂¹ ← r,    Q̂ʰ ← r + γ Σ_a π(a|s') Q̂ʰ⁻¹(s', a),    R̂ = Q̂¹

π is taken at the step of s', so that a policy may depend on the step, and nothing is added after the end of an episode.
The optimal policy is that of fitted Q iteration, with the best legal action in s' instead of the sum over π.

Le, Voloshin & Yue, "Batch policy learning under constraints" (ICML 2019); Ernst, Geurts & Wehenkel, "Tree-based batch
mode reinforcement learning" (JMLR 2005).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from offpolicy._util import scalars
from offpolicy._util.optional import imported
from offpolicy.errors.kinds.of_logs import empty_log
from offpolicy.errors.kinds.of_models import not_a_regressor
from offpolicy.errors.kinds.of_simulation import steps_outside_table
from offpolicy.logs.columns import Columns
from offpolicy.logs.transitions import Transitions, transitions
from offpolicy.models.fitters.q_function import ACTIONS, QFunction
from offpolicy.policies import EpsilonGreedy
from offpolicy.protocols import Actions, Floats, Policy, Setting, States, Step


@dataclass(frozen=True)
class Fqe:
    """A fitter of Q̂ by any regressor with scikit-learn's `fit` and `predict`; it keeps the whole log in memory.

    Parameters
    ----------
    regressor
        A regressor that is not fitted, which is copied for each regression. The default is scikit-learn's
        `HistGradientBoostingRegressor(random_state=0)` (extra `learn`).
    actions
        How actions enter: `"one-hot"` as features beside the state, or `"separate"` with one regressor per action.
    stationary
        True for a single Q̂, that of `iterations` steps, which is used at every step. This takes less memory, and fewer
        regressions if the horizon is long; π is then taken at step 0.
    iterations
        The number of regressions for a stationary Q̂ and for the optimal policy; by default the horizon.
    columns
        The names of the log's columns.

    Examples
    --------
    >>> import offpolicy as op
    >>> from offpolicy.testing import Walk
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> walk = Walk()
    >>> log = walk.simulate(walk.behavior, n=2000, seed=0)
    >>> model = op.fitter("fqe", regressor=DecisionTreeRegressor(random_state=0)).fit(log, walk)
    >>> values = model.values(walk.policies["eager"], walk.horizon, walk.discount)
    >>> start = log.head(1).select("place").to_numpy()
    >>> truth = walk.exact_values(walk.policies["eager"])[1][0, 3]
    >>> bool(abs(values.v_hat(start, step=0)[0] - truth) < 0.02)
    True
    """

    regressor: Any = None
    actions: str = "one-hot"
    stationary: bool = False
    iterations: int | None = None
    columns: Columns | None = None

    def __post_init__(self) -> None:
        """Raise an error for invalid parameters."""
        scalars.choice("actions", self.actions, ACTIONS)
        object.__setattr__(self, "stationary", scalars.flag("stationary", self.stationary))
        object.__setattr__(self, "iterations", scalars.size("iterations", self.iterations))
        if self.regressor is not None and not all(hasattr(self.regressor, name) for name in ("fit", "predict")):
            raise not_a_regressor(found=type(self.regressor).__name__)

    def fit(self, log: object, domain: Setting) -> FqeModel:
        """Read the steps and fit the reward; the values of a policy are fitted when `values` is called."""
        batches = list(transitions(log, domain, self.columns))
        if not any(len(batch.rewards) for batch in batches):
            raise empty_log(what="the log has no step to fit a model to")
        steps = _Steps(batches)
        model = QFunction(self._regressor(), self.actions, domain)
        reward = model.fitted(steps.states, steps.actions, steps.rewards, unseen=domain.reward_range[0])
        return FqeModel(self, domain, steps, reward)

    def _regressor(self) -> Any:
        if self.regressor is not None:
            return deepcopy(self.regressor)
        ensemble = imported("sklearn.ensemble", extra="learn", to="fit Q̂ by gradient boosting")
        return ensemble.HistGradientBoostingRegressor(random_state=0)


class _Steps:
    """All steps of a log as arrays; `follows` marks those after which the episode goes on in a known next state."""

    def __init__(self, batches: list[Transitions]) -> None:
        self.states: States = np.concatenate([batch.states for batch in batches])
        self.actions: Actions = np.concatenate([batch.actions for batch in batches])
        self.rewards: Floats = np.concatenate([batch.rewards for batch in batches])
        known = np.concatenate([batch.known for batch in batches])
        follows = known & ~np.concatenate([batch.terminal for batch in batches])
        self.next_states: States = np.concatenate([batch.next_states for batch in batches])[follows]
        self.known, self.follows = known, follows


@dataclass(frozen=True, eq=False)
class FqeModel:
    """The steps of a log, to which the values of any policy can be fitted."""

    fitter: Fqe
    domain: Setting
    steps: _Steps
    reward: QFunction

    def values(self, policy: Policy, horizon: int, discount: float) -> FqeValues:
        """Fit one regression for each number of remaining steps, or one stationary Q̂."""
        if self.fitter.stationary:
            backup = self._following(policy, lambda h: 0)
            q = self._backwards(self.fitter.iterations or horizon, discount, backup, keep=False)
        else:
            q = self._backwards(horizon, discount, self._following(policy, lambda h: horizon - h + 1), keep=True)
        return FqeValues(policy, q, self.reward, horizon, tuple(self.domain.state_columns), self.domain.actions)

    def optimal_policy(self, maximize: bool = True) -> EpsilonGreedy:
        """Return the best policy, or the worst, by fitted Q iteration with the domain's discount."""
        sign = 1.0 if maximize else -1.0

        def best(q: QFunction, states: States, h: int) -> Floats:
            legal = self.domain.legal(states)
            found: Floats = sign * np.where(legal, sign * q.every_action(states), -np.inf).max(axis=1, initial=-np.inf)
            return found

        iterations = self.fitter.iterations or self.domain.horizon
        (q,) = self._backwards(iterations, self.domain.discount, best, keep=False)
        return EpsilonGreedy(lambda states, step: sign * q.every_action(states), legal=self.domain.legal)

    def _following(self, policy: Policy, step_of: Callable[[int], int]) -> Callable[[QFunction, States, int], Floats]:
        """Return a function for V of next states under a policy, which are at step `step_of(h)`."""

        def value(q: QFunction, states: States, h: int) -> Floats:
            pi = policy.probabilities(states, step_of(h))
            return expected(pi, q.every_action(states))

        return value

    def _backwards(
        self, horizon: int, discount: float, value: Callable[[QFunction, States, int], Floats], keep: bool
    ) -> list[QFunction]:
        """Return Q̂¹, …, Q̂ᴴ, or only the last; a step without a known next state is used only to fit the reward."""
        steps, low = self.steps, self.domain.reward_range[0]
        if horizon > 1 and not steps.known.any():
            raise empty_log(what="no step of the log tells where it led: values beyond one step cannot be fitted")
        q, found, worst = self.reward, [self.reward], low
        for h in range(2, horizon + 1):
            worst = low + discount * worst
            target = steps.rewards.copy()
            if len(steps.next_states):
                target[steps.follows] += discount * value(q, steps.next_states, h)
            known = steps.known
            q = q.fitted(steps.states[known], steps.actions[known], target[known], unseen=worst)
            found = [*found, q] if keep else [q]
        return found


@dataclass(frozen=True, eq=False)
class FqeValues:
    """Q̂ʰ of one policy; if there is only one function, it is used at every step."""

    policy: Policy
    q: list[QFunction]  # by the number of remaining steps, from 1
    reward: QFunction
    horizon: int
    state_columns: tuple[str, ...]
    actions: int

    def q_hat(self, states: States, actions: Actions, step: Step) -> Floats:
        """Return Q̂(s, a) with horizon - step remaining steps."""
        return self._by_step(states, step, lambda q, rows: q.of(states[rows], np.asarray(actions)[rows]))

    def v_hat(self, states: States, step: Step) -> Floats:
        """Return Σ_a π(a|s) Q̂(s, a)."""
        pi = self.policy.probabilities(states, step)
        return self._by_step(states, step, lambda q, rows: expected(pi[rows], q.every_action(states[rows])))

    def r_hat(self, states: States, actions: Actions) -> Floats:
        """Return R̂(s, a)."""
        return self.reward.of(states, np.asarray(actions))

    def _by_step(self, states: States, step: Step, value: Callable[[QFunction, Any], Floats]) -> Floats:
        steps = np.broadcast_to(np.asarray(step), len(states))
        if ((steps < 0) | (steps >= self.horizon)).any():
            raise steps_outside_table(
                what="the values are of", last=self.horizon - 1, but="not", lowest=steps.min(), highest=steps.max()
            )
        found = np.zeros(len(states))
        for t in np.unique(steps):
            rows = np.flatnonzero(steps == t)
            found[rows] = value(self.q[-1] if len(self.q) == 1 else self.q[self.horizon - t - 1], rows)
        return found


def expected(pi: Floats, q: Floats) -> Floats:
    """Return Σ_a π(a|s) Q̂(s, a), where actions of probability 0 do not count, whatever their Q̂ is."""
    found: Floats = np.where(pi > 0, pi * q, 0.0).sum(axis=1)
    return found
