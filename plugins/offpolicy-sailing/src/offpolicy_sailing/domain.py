"""The Sailing domain: a boat reaches the far corner of a lake at the least cost while the wind turns.

A state is (x, y, previous heading, wind), and an action is the next heading; `wind.py` has the cost of a step. Headings
against the wind or off the lake are forbidden. The corner (size-1, size-1) ends the episode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from offpolicy import Grid
from offpolicy._util import scalars
from offpolicy.errors import UsageError
from offpolicy.policies import Uniform
from offpolicy.protocols import Actions, Domain, Floats, Policy, States
from offpolicy.simulation.rollouts import draw

from offpolicy_sailing.wind import AGAINST, DIRECTIONS, DX, DY, NAMES, TURNS, WORST, angle, cost

if TYPE_CHECKING:
    import altair as alt
    import polars as pl


@dataclass(frozen=True)
class Sailing(Domain):
    """The domain, with a parameter for each choice that Jiang & Li (2016) leave open.

    `start` is "uniform" over the lake except its goal, or "corner", which is (0, 0); heading and wind are uniform.
    `wind` tells whether the number of a wind is the direction that it blows "toward" or comes "from".

    >>> from offpolicy_sailing import Sailing
    >>> log = Sailing(start="corner").simulate(Sailing().behavior, n=2, seed=1)
    >>> log.select("step", "x", "y").row(0)
    (0, 0, 0)
    """

    start: str = "uniform"
    wind: str = "toward"
    size: int = 10
    horizon: int = 100
    discount: float = 0.99
    name = "sailing"
    state_columns = ("x", "y", "heading", "wind")
    actions = DIRECTIONS
    action_names = NAMES
    action_axis = "circle"
    reward_range = (-WORST, 0.0)

    def __post_init__(self) -> None:
        """Raise an error for invalid parameters."""
        for name, choices in (("start", ("uniform", "corner")), ("wind", ("toward", "from"))):
            scalars.choice(name, getattr(self, name), choices)
        for name, least in (("size", 2), ("horizon", 1)):
            object.__setattr__(self, name, scalars.whole(name, getattr(self, name), least))
        object.__setattr__(self, "discount", scalars.discount(self.discount))

    @property
    def grid(self) -> Grid:
        """The grid of all states, in which directions are circular."""
        return Grid((self.size, self.size, DIRECTIONS, DIRECTIONS), circular=(False, False, True, True))

    @property
    def behavior(self) -> Policy:
        """The behaviour policy, which takes all legal headings with equal probability."""
        return Uniform(self.actions, self.legal)

    @property
    def policies(self) -> Mapping[str, Callable[[], Policy]]:
        """One policy, `optimal`, the best stationary policy at this discount by exact dynamic programming."""
        from offpolicy_sailing.exact import Exact

        return {"optimal": lambda: Exact(self).optimal_policy(self.discount)}

    def value(self, policy: Policy) -> float:
        """Return V of a policy over this horizon, by exact dynamic programming."""
        from offpolicy_sailing.exact import Exact

        exact = Exact(self)
        return float(exact.start @ exact.values(policy, self.horizon, self.discount)[-1])

    def legal(self, states: States) -> NDArray[np.bool_]:
        """Return the legal headings, which are neither against the wind nor off the lake."""
        place = states[:, :2].astype(np.intp)
        on_lake = np.all((place >= 0) & (place < self.size), axis=1, keepdims=True)
        x, y = np.where(on_lake, place, 0).T
        legal: NDArray[np.bool_] = _legal(self.size)[x, y, self.toward(states).astype(np.intp) % DIRECTIONS] & on_lake
        return legal

    def reset(self, n: int, rng: np.random.Generator) -> States:
        """Draw first states."""
        place = rng.integers(self.size**2 - 1, size=n) if self.start == "uniform" else np.zeros(n, dtype=np.int64)
        directions = rng.integers(DIRECTIONS, size=(n, 2))
        return np.column_stack([*np.divmod(place, self.size), directions]).astype(np.int32)

    def step(
        self, states: States, actions: Actions, rng: np.random.Generator
    ) -> tuple[States, Floats, NDArray[np.bool_]]:
        """Make one move, after which the wind turns."""
        forbidden = ~self.legal(states)[np.arange(len(states)), actions]
        if forbidden.any():
            row = int(np.argmax(forbidden))
            raise UsageError(f"row {row}: heading {actions[row]} is forbidden in state {states[row].tolist()}")
        following = np.column_stack(
            [
                states[:, 0] + DX[actions],
                states[:, 1] + DY[actions],
                actions,
                draw(TURNS[states[:, 3]], rng),
            ]
        ).astype(states.dtype)
        return following, -cost(states[:, 2], self.toward(states), actions), self.at_goal(following)

    def at_goal(self, states: States) -> NDArray[np.bool_]:
        """Return which states are at the goal."""
        arrived: NDArray[np.bool_] = (states[:, :2] == self.size - 1).all(axis=1)
        return arrived

    def plot(self, log: pl.DataFrame, episode: Any) -> alt.LayerChart | alt.FacetChart:
        """Draw the route of one episode, with the wind at every step."""
        from offpolicy_sailing.picture import route

        return route(self, log, episode)

    def toward(self, states: States) -> NDArray[Any]:
        """Return the direction that the wind blows toward."""
        numbers: NDArray[Any] = states[:, 3]
        return numbers if self.wind == "toward" else (numbers + AGAINST) % DIRECTIONS


@lru_cache
def _legal(size: int) -> NDArray[np.bool_]:
    """Return the legal headings by x, y, the direction that the wind blows toward, and heading."""
    place, direction = np.arange(size)[:, None], np.arange(DIRECTIONS)
    on_lake = [(place + step >= 0) & (place + step < size) for step in (DX, DY)]
    with_wind = angle(direction, direction[:, None]) < AGAINST
    legal: NDArray[np.bool_] = on_lake[0][:, None, None] & on_lake[1][:, None] & with_wind
    return legal
