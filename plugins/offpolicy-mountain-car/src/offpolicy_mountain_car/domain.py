"""Mountain Car, whose engine is too weak for the hill, so that the car must swing.

The state is (x, v) in [-1.2, 0.6] × [-0.07, 0.07]. The action a = 0, 1, 2 pushes left, not at all, right. One inner
step is

    v ← clip(v + 0.001 (a - 1) - 0.0025 cos 3x),   x ← clip(x + v),   and v = 0 at the left wall where v < 0

One step of the domain is `substeps` inner steps with the same action, 4 in Jiang & Li (2016), "Experiment Details". The
reward is -1 in every step, including the last. The episode ends when x reaches 0.6. The dynamics are those of Sutton &
Barto, "Reinforcement Learning: An Introduction" (1998), 8.4, with the goal at 0.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray
from offpolicy import Grid
from offpolicy._util import scalars
from offpolicy.policies import Uniform
from offpolicy.protocols import Actions, Domain, Floats, Policy, States

from offpolicy_mountain_car.policies import AlongVelocity

if TYPE_CHECKING:
    import altair as alt

LEFT_WALL, GOAL = -1.2, 0.6
VALLEY = -0.6, -0.4
TOP_SPEED = 0.07
PUSH, GRAVITY = 0.001, 0.0025
STARTS = ("uniform", "valley")
STOPS = ("at-once", "after-step")


@dataclass(frozen=True)
class MountainCar(Domain):
    """The domain, with a parameter for each choice that the paper leaves open.

    `start` is "uniform" over the state space, or "valley", at rest with x in [-0.6, -0.4]. With `stop="at-once"` an
    episode ends when an inner step reaches the goal; with "after-step" only the position after the last inner step
    counts.

    >>> import offpolicy as op
    >>> car = op.domain("mountain-car", horizon=20)
    >>> car.simulate(car.behavior, 2, seed=3).columns
    ['episode', 'step', 'x', 'v', 'action', 'reward', 'behavior_prob', 'terminal', 'next_x', 'next_v']
    """

    substeps: int = 4
    horizon: int = 100
    discount: float = 0.99
    start: str = "uniform"
    stop: str = "at-once"

    name = "mountain-car"
    state_columns = ("x", "v")
    actions = 3
    action_names = ("left", "coast", "right")
    reward_range = (-1.0, 0.0)  # 0 once absorbed
    grid = Grid.over([(LEFT_WALL, GOAL), (-TOP_SPEED, TOP_SPEED)], scale=(64, 256))

    def __post_init__(self) -> None:
        """Raise an error for invalid parameters."""
        for name in ("substeps", "horizon"):
            object.__setattr__(self, name, scalars.whole(name, getattr(self, name), 1))
        object.__setattr__(self, "discount", scalars.discount(self.discount))
        for name, known in (("start", STARTS), ("stop", STOPS)):
            scalars.choice(name, getattr(self, name), known)

    @property
    def behavior(self) -> Policy:
        """The behaviour policy π0, which takes all pushes with equal probability."""
        return Uniform(self.actions)

    @property
    def policies(self) -> Mapping[str, Policy]:
        """Further policies by name."""
        return {"along-velocity": AlongVelocity()}

    @property
    def start_range(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The lowest and highest x and v of first states, which are uniform between them."""
        if self.start == "uniform":
            return (LEFT_WALL, GOAL), (-TOP_SPEED, TOP_SPEED)
        return VALLEY, (0.0, 0.0)

    def reset(self, n: int, rng: np.random.Generator) -> States:
        """Draw first states."""
        states = np.zeros((n, 2), order="F")
        for column, (low, high) in enumerate(self.start_range):
            if low < high:
                states[:, column] = rng.uniform(low, high, n)
        return states

    def step(
        self, states: States, actions: Actions, rng: np.random.Generator
    ) -> tuple[States, Floats, NDArray[np.bool_]]:
        """Make `substeps` inner steps, in place on contiguous columns for speed."""
        after = np.array(states, dtype=float, order="F")
        x, v = after[:, 0], after[:, 1]
        push: Floats = np.multiply(actions - 1, PUSH)
        pull = np.empty_like(x)
        for _ in range(self.substeps):
            arrived = np.flatnonzero(x >= GOAL) if self.stop == "at-once" else _NOBODY
            speed = v[arrived]
            _inner_step(x, v, push, pull)
            x[arrived], v[arrived] = GOAL, speed
        return after, np.full(len(after), -1.0), x >= GOAL

    def plot(self, log: pl.DataFrame, episode: int = 0) -> alt.VConcatChart:
        """Draw the phase plot and the hill for one episode of a log."""
        from offpolicy_mountain_car.picture import picture

        return picture(log, episode, self.action_names)


_NOBODY = np.empty(0, dtype=np.intp)


def _inner_step(x: Floats, v: Floats, push: Floats, pull: Floats) -> None:
    """Make one inner step of all cars in place; `pull` is a buffer for gravity's part."""
    np.multiply(x, 3.0, out=pull)
    np.cos(pull, out=pull)
    pull *= GRAVITY
    v += push
    v -= pull
    np.clip(v, -TOP_SPEED, TOP_SPEED, out=v)
    x += v
    np.clip(x, LEFT_WALL, GOAL, out=x)
    v[(x == LEFT_WALL) & (v < 0)] = 0.0
