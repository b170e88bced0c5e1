"""A function of state and action from regressors: one that sees the action as a feature, or one for each action."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from offpolicy.errors import OffPolicyError
from offpolicy.protocols import Actions, Floats, Setting, States

ONE_HOT, SEPARATE = "one-hot", "separate"
ACTIONS = (ONE_HOT, SEPARATE)


@dataclass(frozen=True, eq=False)
class QFunction:
    """Q̂(s, a); `blank` is a regressor that is not fitted.

    Where each action has a regressor of its own, one that the log never has is worth `unseen` in every state.

    >>> import numpy as np
    >>> from offpolicy import LoggedDomain
    >>> from sklearn.linear_model import LinearRegression
    >>> domain = LoggedDomain(state_columns=("x",), actions=3, horizon=1, reward_range=(-1.0, 9.0))
    >>> x, actions = np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([0, 0, 1, 1])
    >>> q = QFunction(LinearRegression(), "separate", domain).fitted(x, actions, np.array([1.0, 2, 3, 5]), unseen=-1.0)
    >>> q.every_action(np.array([[2.0]]))
    array([[ 3.,  7., -1.]])
    """

    blank: Any
    kind: str
    domain: Setting
    regressors: Sequence[Any] = field(default=())
    unseen: float = 0.0

    def fitted(self, states: States, actions: Actions, targets: Floats, unseen: float) -> QFunction:
        """The same kind of function, fitted to these targets."""
        if self.kind == ONE_HOT:
            regressors = [self._fitted(self._features(states, actions), targets)]
        else:
            each = [actions == a for a in range(self.domain.actions)]
            regressors = [self._fitted(states[rows], targets[rows]) if rows.any() else None for rows in each]
        return replace(self, regressors=regressors, unseen=unseen)

    def of(self, states: States, actions: Actions) -> Floats:
        """Q̂ of each state with its action."""
        if not len(states):  # scikit-learn refuses
            return np.zeros(0)
        if self.kind == ONE_HOT:
            return self._predicted(self.regressors[0], self._features(states, actions))
        found = np.full(len(states), self.unseen)
        for a, regressor in enumerate(self.regressors):
            rows = np.asarray(actions) == a
            if regressor is not None and rows.any():
                found[rows] = self._predicted(regressor, states[rows])
        return found

    def every_action(self, states: States) -> Floats:
        """Q̂ of each state with all actions, (n, actions)."""
        n = len(states)
        columns = [self.of(states, np.full(n, a)) for a in range(self.domain.actions)]
        return np.stack(columns, axis=1)

    def _features(self, states: States, actions: Actions) -> Floats:
        one_hot = np.asarray(actions)[:, None] == np.arange(self.domain.actions)
        return np.concatenate([states, one_hot], axis=1, dtype=float)

    def _fitted(self, features: States, targets: Floats) -> Any:
        regressor = deepcopy(self.blank)
        regressor.fit(features, targets)
        return regressor

    def _predicted(self, regressor: Any, features: Floats) -> Floats:
        found = np.asarray(regressor.predict(features), dtype=float).reshape(-1)
        if len(found) != len(features) or not np.isfinite(found).all():
            raise OffPolicyError(
                f"{type(regressor).__name__} predicted {len(found)} values for {len(features)} rows, or values that "
                "are not finite"
            )
        return found
