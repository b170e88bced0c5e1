"""The converter of d3rlpy's datasets: arrays such as its `MDPDataset` takes, and the episodes of its replay buffers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from offpolicy.errors.kinds.of_converters import episode_without_steps, wrong_data
from offpolicy.errors.kinds.of_logs import empty_log
from offpolicy.logs.converters.tables import (
    Array,
    actions_of,
    column_of,
    entry,
    flags_of,
    make_log,
    propensities_of,
    stacked,
    states_of,
)


def from_d3rlpy(
    dataset: Any,
    *,
    horizon: int | None = None,
    behavior_prob: str | None = None,
    state_columns: Sequence[str] | None = None,
) -> pl.DataFrame:
    """Return the log of a d3rlpy dataset with discrete actions.

    Parameters
    ----------
    dataset
        A `ReplayBuffer` or `MDPDataset` of d3rlpy 2, or any sequence of its `Episode`s, which have `observations`,
        `actions`, `rewards` and `terminated`; or a mapping of the arrays that `MDPDataset` takes, with one row per
        step: `observations`, `actions`, `rewards`, `terminals` and optionally `timeouts`. In the arrays an episode
        ends where one of the last two is set. The state after the last step of an episode is not in such data.
    horizon
        H, if it is known. Longer episodes are refused.
    behavior_prob
        The key or attribute that holds the probabilities of the actions taken.
    state_columns
        Names for the columns of the state.

    Examples
    --------
    >>> import numpy as np, offpolicy as op
    >>> dataset = {
    ...     "observations": np.arange(5.0)[:, None],
    ...     "actions": np.array([0, 1, 0, 1, 1]),
    ...     "rewards": np.array([0.0, 1.0, 0.0, 0.0, 2.0]),
    ...     "terminals": np.array([0, 1, 0, 0, 0]),
    ...     "timeouts": np.array([0, 0, 0, 0, 1]),
    ... }
    >>> op.from_d3rlpy(dataset).select("episode", "step", "state", "terminal", "truncated").rows()[1:]
    [(0, 1, 1.0, True, False), (1, 0, 2.0, False, False), (1, 1, 3.0, False, False), (1, 2, 4.0, False, True)]
    """
    if not isinstance(dataset, Mapping):
        return _from_buffer(dataset, horizon, behavior_prob, state_columns)
    states = states_of(entry(dataset, "observations"), "observations")
    n = len(next(iter(states.values())))
    terminal = flags_of(entry(dataset, "terminals"), "terminals", n)
    timeouts = entry(dataset, "timeouts", required=False)
    cut = np.zeros(n, dtype=bool) if timeouts is None else flags_of(timeouts, "timeouts", n)
    columns = {
        **states,
        "action": actions_of(entry(dataset, "actions"), "actions", n),
        "reward": column_of(entry(dataset, "rewards"), "rewards", n).astype(float),
        **propensities_of(dataset, behavior_prob, n, ""),
        "terminal": terminal,
        "truncated": cut,
    }
    ends = np.flatnonzero(terminal | cut)
    if not n:
        raise empty_log(what="there is no step")
    if not len(ends) or ends[-1] != n - 1:
        ends = np.append(ends, n - 1)  # the data stop inside an episode
    lengths = np.diff(ends, prepend=-1).tolist()
    return make_log(range(len(lengths)), lengths, columns, horizon, state_columns)


def _from_buffer(
    buffer: Any, horizon: int | None, behavior_prob: str | None, state_columns: Sequence[str] | None
) -> pl.DataFrame:
    """Return the log of a replay buffer or of a sequence of episodes."""
    episodes = getattr(buffer, "episodes", buffer)
    if isinstance(episodes, str | bytes) or not isinstance(episodes, Iterable):
        kinds = "a ReplayBuffer, a sequence of Episodes or a mapping of arrays"
        raise wrong_data(library="d3rlpy", expected=kinds, found=type(buffer).__name__)
    parts = [_episode(each, f"episode {number}", behavior_prob) for number, each in enumerate(episodes)]
    if not parts:
        raise empty_log(what="there is no episode")
    return make_log(range(len(parts)), [len(part["reward"]) for part in parts], stacked(parts), horizon, state_columns)


def _episode(episode: Any, who: str, behavior_prob: str | None) -> dict[str, Array]:
    rewards = np.asarray(entry(episode, "rewards", who), dtype=float).reshape(-1)
    steps = len(rewards)
    if not steps:
        raise episode_without_steps(who=who)
    observed = entry(episode, "observations", who)
    parts = tuple(observed) if isinstance(observed, list) else observed  # a list of arrays
    (ended,) = flags_of([entry(episode, "terminated", who)], f"{who}: terminated", 1)
    return {
        **states_of(parts, f"{who}: observations", steps),
        "action": actions_of(entry(episode, "actions", who), f"{who}: actions", steps),
        "reward": rewards,
        **propensities_of(episode, behavior_prob, steps, f"{who}: "),
        "terminal": (np.arange(steps) == steps - 1) & ended,
    }
