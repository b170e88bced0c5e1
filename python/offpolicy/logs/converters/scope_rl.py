"""The converter of SCOPE-RL's logged datasets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from offpolicy.errors.kinds.of_converters import continuous_actions, no_trajectories
from offpolicy.errors.kinds.of_logs import empty_log
from offpolicy.logs.converters.tables import (
    actions_of,
    column_of,
    entry,
    flags_of,
    make_log,
    propensities_of,
    states_of,
)
from offpolicy.logs.pool import pool


def from_scope_rl(dataset: Any, *, state_columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Return the log of a SCOPE-RL `logged_dataset`, or of a `MultipleLoggedDataset`, with discrete actions.

    All its trajectories have `step_per_trajectory` rows, which is the horizon. Rows after one that is `done` are
    padding and are left out. A row with both `done` and `terminal` marks the end of time, not of the episode, so that
    the episode is `truncated` there. Several datasets are pooled as by `op.pool`, each under the name of its behaviour
    policy and its number. Files of datasets must be read with SCOPE-RL first.

    >>> import numpy as np, offpolicy as op
    >>> dataset = {
    ...     "size": 4, "n_trajectories": 2, "step_per_trajectory": 2, "action_type": "discrete", "n_actions": 2,
    ...     "state": np.array([[0.0], [1.0], [5.0], [6.0]]), "action": np.array([0, 1, 1, 0]),
    ...     "reward": np.array([1.0, 2.0, 3.0, 4.0]), "pscore": np.array([0.5, 0.5, 0.25, 0.5]),
    ...     "done": np.array([0, 1, 1, 1]), "terminal": np.array([0, 1, 0, 1]),
    ... }
    >>> op.from_scope_rl(dataset).select("episode", "step", "reward", "behavior_prob", "terminal").rows()
    [(0, 0, 1.0, 0.5, False), (0, 1, 2.0, 0.5, False), (1, 0, 3.0, 0.25, True)]
    """
    if callable(getattr(dataset, "get", None)) and hasattr(dataset, "behavior_policy_names"):
        pooled: pl.DataFrame = pool(_each(dataset, state_columns))
        return pooled
    if entry(dataset, "action_type", required=False) == "continuous":
        raise continuous_actions(what="the dataset has continuous actions", actions="ones", done="converted")
    count, horizon = (int(entry(dataset, key)) for key in ("n_trajectories", "step_per_trajectory"))
    if count < 1 or horizon < 1:
        raise no_trajectories(count=count, horizon=horizon)
    n = count * horizon
    states = states_of(entry(dataset, "state"), "state", n)
    done, time_up = (flags_of(entry(dataset, key), key, n) for key in ("done", "terminal"))
    columns = {
        **states,
        "action": actions_of(entry(dataset, "action"), "action", n),
        "reward": column_of(entry(dataset, "reward"), "reward", n).astype(float),
        **propensities_of(dataset, "pscore" if entry(dataset, "pscore", required=False) is not None else None, n, ""),
        "terminal": done & ~time_up,
    }
    ended = (done | time_up).reshape(count, horizon)
    ended[:, -1] = True
    lengths = ended.argmax(axis=1) + 1
    kept = (np.arange(horizon) < lengths[:, None]).reshape(-1)
    columns = {name: values[kept] for name, values in columns.items()}
    return make_log(range(count), lengths.tolist(), columns, horizon, state_columns)


def _each(datasets: Any, state_columns: Sequence[str] | None) -> dict[str, pl.DataFrame]:
    """Return the logs of a `MultipleLoggedDataset`, each under the name of its behaviour policy and its number."""
    counts = datasets.n_datasets
    logs = {
        f"{name}-{number}": from_scope_rl(datasets.get(name, number), state_columns=state_columns)
        for name in datasets.behavior_policy_names
        for number in range(counts[name])
    }
    if not logs:
        raise empty_log(what="there is no dataset")
    return logs
