"""A function of state and action from one regressor with the action as a feature, or from one regressor per action."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offpolicy.errors.kinds.of_models import bad_predictions
from offpolicy.models.fitters.openmp import limited
from offpolicy.protocols import Actions, Floats, Setting, States

ONE_HOT, SEPARATE = "one-hot", "separate"
ACTIONS = (ONE_HOT, SEPARATE)
#: The approximate number of rows per call of a regressor.
BATCH_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class QFunction:
    """The function Q̂(s, a); `blank` is a regressor that is not fitted.

    If each action has its own regressor, an action that the log never has gets the value `unseen` in every state.

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
        """Return a function of the same kind, fitted to these targets."""
        if self.kind == ONE_HOT:
            regressors = [self._fitted(self._features(states, actions), targets)]
        else:
            each = [actions == a for a in range(self.domain.actions)]
            regressors = [self._fitted(states[rows], targets[rows]) if rows.any() else None for rows in each]
        return replace(self, regressors=regressors, unseen=unseen)

    def of(self, states: States, actions: Actions) -> Floats:
        """Return Q̂ of each state with its action."""
        if not len(states):  # scikit-learn raises an error
            return np.zeros(0)
        pairs, again = _distinct(np.column_stack([states, actions]))
        return self._of_distinct(pairs[:, :-1].astype(states.dtype), pairs[:, -1].astype(np.int64))[again]

    def every_action(self, states: States) -> Floats:
        """Return Q̂ of each state with all actions, (n, actions); equal states are predicted only once."""
        if not len(states):
            return np.zeros((0, self.domain.actions))
        n_actions = self.domain.actions
        distinct, again = _distinct(states)
        found = [
            self._of_distinct(np.repeat(part, n_actions, axis=0), np.tile(np.arange(n_actions), len(part)))
            for part in np.array_split(distinct, -(-len(distinct) * n_actions // BATCH_ROWS))
        ]
        return np.concatenate(found).reshape(-1, n_actions)[again]

    def _of_distinct(self, states: States, actions: Actions) -> Floats:
        if self.kind == ONE_HOT:
            return self._predicted(self.regressors[0], self._features(states, actions))
        found = np.full(len(states), self.unseen)
        for a, regressor in enumerate(self.regressors):
            rows = actions == a
            if regressor is not None and rows.any():
                found[rows] = self._predicted(regressor, states[rows])
        return found

    def _features(self, states: States, actions: Actions) -> Floats:
        one_hot = np.asarray(actions)[:, None] == np.arange(self.domain.actions)
        return np.concatenate([states, one_hot], axis=1, dtype=float)

    def _fitted(self, features: States, targets: Floats) -> Any:
        regressor = deepcopy(self.blank)
        with limited(len(features)):
            regressor.fit(features, targets)
        return regressor

    def _predicted(self, regressor: Any, features: Floats) -> Floats:
        with limited(len(features)):
            found = np.asarray(regressor.predict(features), dtype=float).reshape(-1)
        if len(found) != len(features) or not np.isfinite(found).all():
            raise bad_predictions(regressor=type(regressor).__name__, found=len(found), rows=len(features))
        return found


def _distinct(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the distinct rows, compared byte by byte, and the index of each row among them."""
    matrix = np.ascontiguousarray(rows)
    whole = matrix.view(np.dtype((np.void, matrix.dtype.itemsize * matrix.shape[1]))).reshape(-1)
    _, first, again = np.unique(whole, return_index=True, return_inverse=True)
    return matrix[first], again.reshape(-1)
