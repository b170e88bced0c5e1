"""Mountain Car as in the paper, which makes the log and the model for the benchmarks of models.

The published domain is a package of its own, which a benchmark of the core should not need.
"""

import numpy as np
import offpolicy as op
import polars as pl
from offpolicy.protocols import Domain

HORIZON, DISCOUNT = 100, 0.99
ALPHAS = (0.0, 0.25, 0.5, 0.75)
GRID = op.Grid.over([(-1.2, 0.6), (-0.07, 0.07)], scale=(64, 256))


class Car(Domain):
    name = "car"
    state_columns = ("x", "v")
    actions = 3
    horizon = HORIZON
    discount = DISCOUNT
    reward_range = (-1.0, 0.0)
    grid = GRID

    @property
    def behavior(self):
        return op.policies.Uniform(3)

    def reset(self, n, rng):
        return np.stack([rng.uniform(-1.2, 0.6, n), rng.uniform(-0.07, 0.07, n)], axis=1)

    def step(self, states, actions, rng):
        x, v = states.T.copy()
        done = np.zeros(len(x), dtype=bool)
        for _ in range(4):
            faster = np.clip(v + 0.001 * (actions - 1) - 0.0025 * np.cos(3 * x), -0.07, 0.07)
            v = np.where(done, v, faster)
            x = np.where(done, x, np.clip(x + v, -1.2, 0.6))
            v = np.where((x <= -1.2) & (v < 0), 0.0, v)
            done |= x >= 0.6
        return np.stack([x, v], axis=1), np.full(len(x), -1.0), done


def log(episodes: int, seed: int = 0) -> pl.DataFrame:
    car = Car()
    return car.simulate(car.behavior, episodes, seed)


def mixtures(greedy: op.policies.TabularPolicy) -> list[op.policies.Mixture]:
    """Return the mixtures (1-α)π + απ0 for the α of the paper."""
    return [op.policies.Mixture(greedy, Car().behavior, alpha) for alpha in ALPHAS]


def steps(rows: int, seed: int = 0) -> pl.DataFrame:
    """Return `rows` steps of episodes of full length, with states anywhere, as input for annotate."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "episode": np.arange(rows) // HORIZON,
            "step": (np.arange(rows) % HORIZON).astype(np.int32),
            "x": rng.uniform(-1.2, 0.6, rows),
            "v": rng.uniform(-0.07, 0.07, rows),
            "action": rng.integers(0, 3, rows, dtype=np.int32),
        }
    )
