"""Annotation with NumPy, which gathers from tables over cells, actions and steps."""

import numpy as np
import offpolicy as op
import polars as pl
from car import GRID, steps
from offpolicy.mdp import q_values
from offpolicy.models.fitters.tabular_values import TabularValues

NAME = "NumPy gathers"


def prepare(policy: op.policies.TabularPolicy, values: TabularValues) -> tuple[np.ndarray, ...]:
    """Return π, Q, V and R as tables."""
    q = np.stack([q_values(values.sparse, values.v, t, values.discount) for t in range(values.horizon)])
    return policy.table, q, values.v, values.sparse.rewards


def run(frame: pl.DataFrame, tables: tuple[np.ndarray, ...]) -> pl.DataFrame:
    pi, q, v, r = tables
    cell = np.zeros(frame.height, dtype=np.int64)
    for name, size, low, scale in zip(("x", "v"), GRID.size, GRID.low, GRID.scale, strict=True):
        cell = cell * size + (np.floor(frame[name].to_numpy() * scale + 0.5).astype(np.int64) - low)
    action, step = frame["action"].to_numpy(), frame["step"].to_numpy()
    return frame.with_columns(
        target_prob=pl.Series(pi[cell, action]),
        q_hat=pl.Series(q[step, cell, action]),
        v_hat=pl.Series(v[step, cell]),
        r_hat=pl.Series(r[cell, action]),
    )


def check() -> None:
    """Check that it agrees with ours, bit for bit."""
    from car import Car, log

    model = op.fitter("tabular").fit(log(episodes=50), Car())
    policy = model.optimal_policy()
    values, frame = model.values(policy, Car.horizon, Car.discount), steps(rows=1000)
    assert run(frame, prepare(policy, values)).equals(op.annotate(frame, policy, values))
