"""Counts and finite-horizon values with SciPy's sparse matrices: P̂ as pairs × cells, V of all policies as columns."""

import numpy as np
import offpolicy as op
import polars as pl
import scipy.sparse as sp
from car import DISCOUNT, GRID, HORIZON, Car, log, mixtures

NAME = "SciPy sparse"
_ACTIONS, _UNSEEN = Car.actions, Car.reward_range[0]


def run(frame: pl.DataFrame, policies: list[np.ndarray]) -> np.ndarray:
    """Return V as an array of (horizon, cells, policies)."""
    rewards, transitions = fit(frame)
    pi = np.stack(policies, axis=-1)
    values = np.zeros((HORIZON + 1, GRID.cells, pi.shape[-1]))
    for t in reversed(range(HORIZON)):
        q = rewards[:, None] + DISCOUNT * (transitions @ values[t + 1])
        values[t] = (pi * q.reshape(pi.shape)).sum(axis=1)
    return values[:-1]


def fit(frame: pl.DataFrame) -> tuple[np.ndarray, sp.csr_array]:
    """Return R̂, and P̂ without the transitions that end an episode."""
    cells, pairs = GRID.cells, GRID.cells * _ACTIONS
    pair = _cell(frame["x"], frame["v"]) * _ACTIONS + frame["action"].to_numpy()
    following = _cell(frame["next_x"], frame["next_v"])
    visits = np.bincount(pair, minlength=pairs)
    total = np.bincount(pair, weights=frame["reward"].to_numpy(), minlength=pairs)
    unseen = np.flatnonzero(visits == 0)
    rewards = np.divide(total, visits, out=np.full(pairs, _UNSEEN), where=visits > 0)
    goes_on = ~frame["terminal"].to_numpy()
    rows = np.concatenate([pair[goes_on], unseen])
    columns = np.concatenate([following[goes_on], unseen // _ACTIONS])
    counts = sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=(pairs, cells)).tocsr()
    counts.data /= np.maximum(visits, 1)[np.repeat(np.arange(pairs), np.diff(counts.indptr))]
    return rewards, counts


def _cell(x: pl.Series, v: pl.Series) -> np.ndarray:
    across, along = (
        np.floor(column.to_numpy() * scale + 0.5).astype(np.int64) - low
        for column, scale, low in zip((x, v), GRID.scale, GRID.low, strict=True)
    )
    return across * GRID.size[1] + along


def tables(policies: list[op.policies.Mixture]) -> list[np.ndarray]:
    """Return the tables π(a|cell), which are made before the clock runs."""
    centers = GRID.centers(np.arange(GRID.cells))
    return [policy.probabilities(centers, 0) for policy in policies]


def check() -> None:
    """Check that it agrees with ours on a small log."""
    frame = log(episodes=50)
    model = op.fitter("tabular").fit(frame, Car())
    policies = mixtures(model.optimal_policy())
    ours = model.values_of(policies, HORIZON, DISCOUNT)
    theirs = run(frame, tables(policies))
    for i, values in enumerate(ours):
        np.testing.assert_allclose(values.v, theirs[:, :, i], rtol=1e-12)
