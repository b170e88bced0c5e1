"""A reward that is linear in features, fitted by least squares for each action separately:

    R̂(s, a) = θ_a0 + Σ_i θ_ai s_i,    θ_a = argmin Σ (r - R̂(s, a))² over the steps that took a

Of several minima the one of least norm is taken, so that a feature without variation does no harm. An action that was
never taken has R̂ = 0.
Each batch updates the triangle R of a QR decomposition of [1 s r], which is sufficient for least squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from offpolicy.protocols import Actions, Floats, States

#: Singular values below this fraction of the largest are treated as 0.
RANK_TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class LinearReward:
    """The function R̂; `theta` is (actions, 1 + k), with zeros for the features that were not used.

    >>> import numpy as np
    >>> from offpolicy.models.fitters.linear import LeastSquares
    >>> fit = LeastSquares(actions=1, features=(0,))
    >>> fit.add(np.array([[0.0, 7.0], [1.0, 7.0], [2.0, 7.0]]), np.array([0, 0, 0]), np.array([1.0, 3.0, 5.0]))
    >>> fit.reward(state_features=2).theta.round(12)
    array([[1., 2., 0.]])
    """

    theta: Floats

    def __call__(self, states: States, actions: Actions) -> Floats:
        """Return R̂(s, a), n values."""
        theta = self.theta[actions]
        value: Floats = theta[:, 0] + (theta[:, 1:] * states).sum(axis=1)
        return value

    def every_action(self, states: States) -> Floats:
        """Return R̂(s, ·), (n, actions) values."""
        value: Floats = self.theta[:, 0] + states @ self.theta[:, 1:].T
        return value


class LeastSquares:
    """One regression per action, updated batch by batch."""

    def __init__(self, actions: int, features: Sequence[int]) -> None:
        """Begin without data."""
        self.features = list(features)
        self.triangles = [np.empty((0, len(self.features) + 2)) for _ in range(actions)]

    def add(self, states: States, actions: Actions, rewards: Floats) -> None:
        """Add a batch."""
        rows = np.column_stack([np.ones(len(states)), states[:, self.features], rewards]).astype(float)
        order = np.argsort(actions, kind="stable")
        ends = np.searchsorted(actions[order], np.arange(len(self.triangles) + 1))
        for a, triangle in enumerate(self.triangles):
            mine = rows[order[ends[a] : ends[a + 1]]]
            if len(mine):
                self.triangles[a] = np.asarray(np.linalg.qr(np.vstack([triangle, mine]), mode="r"))

    def reward(self, state_features: int) -> LinearReward:
        """Return the least squares solution for all added batches."""
        theta = np.zeros((len(self.triangles), 1 + state_features))
        used = [0, *(1 + i for i in self.features)]
        for a, triangle in enumerate(self.triangles):
            theta[a, used] = np.linalg.lstsq(triangle[:, :-1], triangle[:, -1], rcond=RANK_TOLERANCE)[0]
        return LinearReward(theta)
