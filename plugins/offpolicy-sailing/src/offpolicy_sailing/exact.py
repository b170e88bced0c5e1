"""The whole domain as arrays, and dynamic programming on them, which is exact up to rounding.

    Q(s,a) = -cost(s,a) + γ Σ_w P(w | wind of s) V(place after a, heading a, wind w),    V = 0 at the goal

A move determines the next place and heading, and only the wind is random. A backup is therefore one product with the
8 × 8 matrix of its turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from offpolicy.models.tabulation import table_at
from offpolicy.policies import TabularPolicy
from offpolicy.protocols import Floats, Policy

from offpolicy_sailing.wind import DIRECTIONS, DX, DY, TURNS, cost

if TYPE_CHECKING:
    from offpolicy_sailing.domain import Sailing

#: The largest number of sweeps of value iteration, which converges long before.
SWEEPS = 10_000


class Exact:
    """All states in the order of the domain's grid: `states` (n, 4), `legal` and `rewards` (n, actions).

    >>> from offpolicy_sailing import Sailing
    >>> from offpolicy_sailing.exact import Exact
    >>> lake = Exact(Sailing(start="corner"))
    >>> values = lake.values(lake.optimal_policy(0.99), horizon=100, discount=0.99)
    >>> round(float(lake.start @ values[100]), 2)
    -34.87
    """

    def __init__(self, domain: Sailing) -> None:
        """Compute the arrays."""
        self.domain, self.grid = domain, domain.grid
        self.states = np.stack(np.unravel_index(np.arange(self.grid.cells), self.grid.size), axis=1)
        self.legal = domain.legal(self.states)
        x, y, heading, _ = (column[:, None] for column in self.states.T)
        headings = np.arange(DIRECTIONS)
        toward = domain.toward(self.states)[:, None]
        self.rewards: Floats = np.where(self.legal, -cost(heading, toward, headings), 0.0)
        place = np.where(self.legal, (x + DX) * domain.size + y + DY, 0)
        #: The next place and heading, as a row of an array (places · headings, winds) over next states.
        self.following: NDArray[np.int64] = place * DIRECTIONS + headings
        self.goal = domain.at_goal(self.states)
        first = ~self.goal if domain.start == "uniform" else (self.states[:, :2] == 0).all(axis=1)
        self.start: Floats = first / first.sum()

    def backup(self, values: Floats, discount: float) -> Floats:
        """Return Q of all (s, a), given V of the next states; illegal actions have -∞, and the goal has 0."""
        expected = np.where(self.goal, 0.0, values).reshape(-1, DIRECTIONS) @ TURNS.T
        q = self.rewards + discount * expected[self.following, self.states[:, 3:]]
        q = np.where(self.legal, q, -np.inf)
        q[self.goal] = 0.0
        return q

    def values(self, policy: Policy, horizon: int, discount: float) -> Floats:
        """Return V^0, …, V^horizon of a policy by remaining steps, (horizon + 1, n)."""
        found = np.zeros((horizon + 1, self.grid.cells))
        allowed = self.legal & ~self.goal[:, None]
        pi = _by_action(np.where(allowed, table_at(policy, self.states, horizon), 0.0))
        pi = np.broadcast_to(pi, (horizon, *pi.shape[-2:]))
        rewards, places = _by_action(self.rewards), _by_action(self.following * DIRECTIONS + self.states[:, 3:])
        for h in range(1, horizon + 1):
            expected = found[h - 1].reshape(-1, DIRECTIONS) @ TURNS.T
            terms = pi[horizon - h] * (rewards + discount * expected.take(places))
            while len(terms) > 1:
                terms = terms[::2] + terms[1::2]
            found[h] = terms[0]
        return found

    def optimal_values(self, discount: float) -> Floats:
        """Return the fixed point V = max_a Q; iteration stops when no value changes in any bit."""
        values = np.zeros(self.grid.cells)
        for _ in range(SWEEPS):
            better = self.backup(values, discount).max(axis=1)
            if np.array_equal(better, values):
                break
            values = better
        return values

    def optimal_policy(self, discount: float) -> TabularPolicy:
        """Return the best stationary policy; of equal headings the first is taken."""
        best = self.backup(self.optimal_values(discount), discount)
        best = np.where(self.legal, best, -np.inf).argmax(axis=1)
        return TabularPolicy(np.eye(DIRECTIONS)[best], self.grid)


def _by_action(table: NDArray[Any]) -> NDArray[Any]:
    """Return a table (…, n, actions) as (…, actions, n), in which sums over actions run along the states."""
    return np.ascontiguousarray(table.swapaxes(-1, -2))
