"""A walk over seven places whose values are known exactly, the domain on which fitters and generators are checked.

    Q_t(s, a) = R(s, a) + γ Σ_s' P(s'|s, a) V_{t+1}(s'),   V_t(s) = Σ_a π_t(a|s) Q_t(s, a),   V_H = 0

An episode starts in the middle and stops at either end. A move costs a little, and reaching the right end earns 1. One
move in ten goes the other way. Staying is forbidden in the places next to an end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from offpolicy.grid import Grid
from offpolicy.policies import FromCallable, Uniform
from offpolicy.protocols import Actions, Domain, Floats, Policy, States, Step

PLACES, START = 7, 3
LEFT, STAY, RIGHT = range(3)
SLIP, COST, PRIZE = 0.1, 0.05, 1.0


@dataclass(frozen=True)
class Walk(Domain):
    """The walk as a domain.

    >>> from offpolicy.testing import Walk
    >>> walk = Walk()
    >>> q, v = walk.exact_values(walk.behavior)
    >>> q.shape, v[0, 3].round(4).item()
    ((12, 7, 3), 0.0043)
    """

    name: str = "walk"
    state_columns: tuple[str, ...] = ("place",)
    actions: int = 3
    horizon: int = 12
    discount: float = 0.95
    reward_range: tuple[float, float] = (-COST, PRIZE)

    action_names: ClassVar[tuple[str, ...]] = ("left", "stay", "right")
    grid: ClassVar[Grid] = Grid((PLACES,))

    @property
    def behavior(self) -> Policy:
        """The policy that takes all legal actions with equal probability."""
        return Uniform(self.actions, self.legal)

    @property
    def policies(self) -> Mapping[str, Policy]:
        """One policy, `eager`, that mostly moves right, and more so in later steps."""
        return {"eager": FromCallable(_eager)}

    def legal(self, states: States) -> NDArray[np.bool_]:
        """Return which actions are legal: all but staying next to an end."""
        allowed = np.ones((len(states), self.actions), dtype=bool)
        allowed[:, STAY] = ~np.isin(states[:, 0], (1, PLACES - 2))
        return allowed

    def reset(self, n: int, rng: np.random.Generator) -> States:
        """Start n walks in the middle."""
        return np.full((n, 1), START)

    def step(
        self, states: States, actions: Actions, rng: np.random.Generator
    ) -> tuple[States, Floats, NDArray[np.bool_]]:
        """Make a move, which may slip."""
        slips = rng.random(len(states)) < SLIP
        move = (np.asarray(actions) - STAY) * np.where(slips, -1, 1)
        places = states[:, 0] + move
        rewards = np.where(places == PLACES - 1, PRIZE, np.where(move == 0, 0.0, -COST))
        return places[:, None], rewards, (places <= 0) | (places >= PLACES - 1)

    def transition_probability(self, states: States, actions: Actions, next_states: States) -> Floats:
        """Return P(s'|s, a) of walks that go on; it is 0 at an end or beyond."""
        places, then = states[:, 0], next_states[:, 0]
        inside = np.isin(places, np.arange(1, PLACES - 1)) & np.isin(then, np.arange(1, PLACES - 1))
        moves, _ = self._model()
        found: Floats = np.where(inside, moves[np.where(inside, places, 0), actions, np.where(inside, then, 0)], 0.0)
        return found

    def exact_values(self, policy: Policy) -> tuple[Floats, Floats]:
        """Return Q_t, (horizon, places, actions), and V_t, (horizon, places), of a policy by backward induction."""
        places = np.arange(PLACES)[:, None]
        moves, rewards = self._model()
        q, v = np.zeros((self.horizon, PLACES, self.actions)), np.zeros((self.horizon + 1, PLACES))
        for t in reversed(range(self.horizon)):
            q[t, 1:-1] = rewards[1:-1] + self.discount * (moves @ v[t + 1])[1:-1]
            v[t] = (policy.probabilities(places, t) * q[t]).sum(axis=1)
        return q, v[:-1]

    def value(self, policy: Policy) -> float:
        """Return V, the expected discounted return of a policy from the middle."""
        return float(self.exact_values(policy)[1][0, START])

    def _model(self) -> tuple[Floats, Floats]:
        """Return P(s'|s, a) and R(s, a) of the places from which a step can be made."""
        moves, rewards = np.zeros((PLACES, self.actions, PLACES)), np.zeros((PLACES, self.actions))
        for place in range(1, PLACES - 1):
            for action in range(self.actions):
                for sign, chance in ((1, 1 - SLIP), (-1, SLIP)):
                    move = sign * (action - STAY)
                    then = place + move
                    moves[place, action, then] += chance
                    rewards[place, action] += chance * (PRIZE if then == PLACES - 1 else -COST if move else 0.0)
        return moves, rewards


def _eager(states: States, step: Step) -> Floats:
    """Move right with a probability from 0.6 to 0.9, and left otherwise."""
    right = np.broadcast_to(0.6 + 0.3 * np.minimum(np.asarray(step), 10) / 10, len(states))
    pi: Floats = np.stack([1 - right, np.zeros(len(states)), right], axis=1)
    return pi
