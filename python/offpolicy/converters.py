"""Logs of other libraries as ours: minari's episodes, d3rlpy's arrays, SCOPE-RL's dictionaries.

All give a frame with `episode`, `step`, the state (`state`, or `state_0`, `state_1`, …), `action`, `reward`,
`terminal`, `truncated`, and where they are known `behavior_prob` and the next state as `next_…`. An episode that was
cut off is `truncated` if that came before the horizon: for an evaluation every episode ends or lasts for the horizon.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offpolicy.errors import MissingColumnError, OffPolicyError, UsageError
from offpolicy.visible import visible

Array = NDArray[Any]


def from_episodes(
    episodes: Iterable[Any],
    *,
    horizon: int | None = None,
    behavior_prob: str | None = None,
    state_columns: Sequence[str] | None = None,
) -> pl.DataFrame:
    """The log of minari's episodes, of a `MinariDataset` or of `EpisodeBuffer`s; mappings with the same keys work too.

    An episode of T steps has T+1 `observations` (or a dictionary or tuple of such arrays), T discrete `actions`,
    `rewards`, `terminations` and `truncations`, and may have an `id` and `infos`.

    Parameters
    ----------
    episodes
        Any iterable of episodes.
    horizon
        H; by default the longest episode.
    behavior_prob
        The key, in `infos` or in the episode itself, of the probabilities of the actions taken: T of them, or T+1 of
        which the first belongs to the reset.
    state_columns
        Names for the columns of the state.

    Examples
    --------
    >>> import numpy as np, offpolicy as op
    >>> episode = {
    ...     "observations": np.array([[0.0, 1.0], [0.5, 1.0], [0.9, 1.0]]),
    ...     "actions": np.array([1, 0]),
    ...     "rewards": np.array([0.0, 1.0]),
    ...     "terminations": np.array([False, True]),
    ...     "truncations": np.array([False, False]),
    ...     "infos": {"prob": np.array([0.5, 0.25])},
    ... }
    >>> log = op.from_episodes([episode], behavior_prob="prob")
    >>> log.select("state_0", "action", "behavior_prob", "next_state_0").rows()
    [(0.0, 1, 0.5, 0.5), (0.5, 0, 0.25, 0.9)]
    """
    parts: list[dict[str, Array]] = []
    ids: list[Any] = []
    for number, episode in enumerate(episodes):
        found = _field(episode, "id", required=False)
        ids.append(number if found is None else found)
        parts.append(_episode(episode, f"episode {visible(str(ids[-1]))}", behavior_prob))
    if not parts:
        raise OffPolicyError("there is no episode")
    if len(set(ids)) < len(ids):
        raise UsageError(f"the id {next(i for i in ids if ids.count(i) > 1)} belongs to several episodes")
    names = {tuple(part) for part in parts}
    if len(names) > 1:
        raise UsageError(f"episodes have different columns: {' and '.join(str(list(each)) for each in sorted(names))}")
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return _log(ids, [len(part["reward"]) for part in parts], columns, horizon, state_columns)


def from_d3rlpy(
    dataset: Mapping[str, Any],
    *,
    horizon: int | None = None,
    behavior_prob: str | None = None,
    state_columns: Sequence[str] | None = None,
) -> pl.DataFrame:
    """The log of the arrays that d3rlpy's `MDPDataset` takes: one row a step, one episode after the other.

    `observations`, discrete `actions`, `rewards` and `terminals`, and optionally `timeouts`; an episode ends where one
    of the last two is set. The state after the last step of an episode is not in such data.

    >>> import numpy as np, offpolicy as op
    >>> dataset = {
    ...     "observations": np.arange(5.0)[:, None],
    ...     "actions": np.array([0, 1, 0, 1, 1]),
    ...     "rewards": np.array([0.0, 1.0, 0.0, 0.0, 2.0]),
    ...     "terminals": np.array([0, 1, 0, 0, 0]),
    ...     "timeouts": np.array([0, 0, 0, 0, 1]),
    ... }
    >>> op.from_d3rlpy(dataset, horizon=10).select("episode", "step", "state", "terminal", "truncated").rows()[1:3]
    [(0, 1, 1.0, True, False), (1, 0, 2.0, False, False)]
    """
    states = _states(_field(dataset, "observations"), "observations")
    n = len(next(iter(states.values())))
    terminal = _flags(_field(dataset, "terminals"), "terminals", n)
    timeouts = _field(dataset, "timeouts", required=False)
    cut = np.zeros(n, dtype=bool) if timeouts is None else _flags(timeouts, "timeouts", n)
    columns = {
        **states,
        "action": _actions(_field(dataset, "actions"), "actions", n),
        "reward": _column(_field(dataset, "rewards"), "rewards", n).astype(float),
        **_propensities(dataset, behavior_prob, n, ""),
        "terminal": terminal,
    }
    ends = np.flatnonzero(terminal | cut)
    if not n:
        raise OffPolicyError("there is no step")
    if not len(ends) or ends[-1] != n - 1:
        ends = np.append(ends, n - 1)  # the data stop inside an episode
    lengths = np.diff(ends, prepend=-1).tolist()
    return _log(range(len(lengths)), lengths, columns, horizon, state_columns)


def from_scope_rl(dataset: Mapping[str, Any], *, state_columns: Sequence[str] | None = None) -> pl.DataFrame:
    """The log of a SCOPE-RL `logged_dataset` with discrete actions.

    All its trajectories have `step_per_trajectory` rows, which is the horizon. What follows a row that is `done` is
    filling and is left out. `done` with `terminal` is the end of time, not of the episode.

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
    if _field(dataset, "action_type", required=False) == "continuous":
        raise UsageError("the dataset has continuous actions: only discrete ones can be converted")
    count, horizon = (int(_field(dataset, key)) for key in ("n_trajectories", "step_per_trajectory"))
    if count < 1 or horizon < 1:
        raise UsageError(f"{count} trajectories of {horizon} steps are no log")
    n = count * horizon
    states = _states(_field(dataset, "state"), "state", n)
    done, time_up = (_flags(_field(dataset, key), key, n) for key in ("done", "terminal"))
    columns = {
        **states,
        "action": _actions(_field(dataset, "action"), "action", n),
        "reward": _column(_field(dataset, "reward"), "reward", n).astype(float),
        **_propensities(dataset, "pscore" if dataset.get("pscore") is not None else None, n, ""),
        "terminal": done & ~time_up,
    }
    ended = (done | time_up).reshape(count, horizon)
    ended[:, -1] = True
    lengths = ended.argmax(axis=1) + 1
    kept = (np.arange(horizon) < lengths[:, None]).reshape(-1)
    columns = {name: values[kept] for name, values in columns.items()}
    return _log(range(count), lengths.tolist(), columns, horizon, state_columns)


def _episode(episode: Any, who: str, behavior_prob: str | None) -> dict[str, Array]:
    rewards = np.asarray(_field(episode, "rewards", who), dtype=float).reshape(-1)
    steps = len(rewards)
    if not steps:
        raise UsageError(f"{who} has no step")
    observed = _states(_field(episode, "observations", who), f"{who}: observations", steps + 1)
    terminal = _flags(_field(episode, "terminations", who), f"{who}: terminations", steps)
    cut = _flags(_field(episode, "truncations", who), f"{who}: truncations", steps)
    early = np.flatnonzero((terminal | cut)[:-1])
    if len(early):
        raise UsageError(f"{who} ends at step {early[0]} and goes on to step {steps - 1}: make it two episodes")
    return {
        **{name: values[:-1] for name, values in observed.items()},
        "action": _actions(_field(episode, "actions", who), f"{who}: actions", steps),
        "reward": rewards,
        **_propensities(episode, behavior_prob, steps, f"{who}: "),
        "terminal": terminal,
        **{f"next_{name}": values[1:] for name, values in observed.items()},
    }


def _log(
    ids: Sequence[Any],
    lengths: Sequence[int],
    columns: Mapping[str, Array],
    horizon: int | None,
    state_columns: Sequence[str] | None,
) -> pl.DataFrame:
    """The frame; `truncated` is the last row of an episode that neither ended nor lasted for the horizon."""
    longest = max(lengths)
    if horizon is not None and horizon < longest:
        raise UsageError(f"an episode has {longest} steps, more than the horizon of {horizon}")
    ends = np.cumsum(lengths) - 1
    truncated = np.zeros(sum(lengths), dtype=bool)
    truncated[ends] = ~columns["terminal"][ends] & (np.array(lengths) < (horizon or longest))
    steps = np.arange(len(truncated)) - np.repeat(ends + 1 - np.array(lengths), lengths)
    frame = pl.DataFrame({**columns, "truncated": truncated}).select(
        pl.Series("episode", np.repeat(np.array(ids), lengths)),
        pl.Series("step", steps.astype(np.int32)),
        pl.exclude("^next_.*$"),
        pl.col("^next_.*$"),
    )
    return _named(frame, state_columns)


def _named(frame: pl.DataFrame, state_columns: Sequence[str] | None) -> pl.DataFrame:
    if state_columns is None:
        return frame
    found = [name for name in frame.columns if name == "state" or name.startswith("state_")]
    if len(found) != len(state_columns):
        raise UsageError(f"the state has {len(found)} columns, and state_columns has {len(state_columns)} names")
    renamed = dict(zip(found, state_columns, strict=True))
    following = {f"next_{old}": f"next_{new}" for old, new in renamed.items()}
    return frame.rename({**renamed, **following}, strict=False)


def _field(data: Any, key: str, who: str = "the dataset", required: bool = True) -> Any:
    """An entry of a mapping, or an attribute of an object."""
    found = data.get(key) if isinstance(data, Mapping) else getattr(data, key, None)
    if found is None and required:
        raise MissingColumnError(f"{who} has no {key!r}")
    return found


def _states(observations: Any, who: str, n: int | None = None) -> dict[str, Array]:
    """A column for each number of an observation; dictionaries and tuples hold arrays of observations."""
    columns = dict(_leaves(observations, ("state",), who))
    for name, values in columns.items():
        if n is not None and len(values) != n:
            raise UsageError(f"{who}: there must be {n} of them, not {len(values)} (column {name!r})")
    return columns


def _leaves(observations: Any, path: tuple[str, ...], who: str) -> Iterable[tuple[str, Array]]:
    if isinstance(observations, Mapping):
        for key in sorted(observations):
            yield from _leaves(observations[key], (*path, str(key)), who)
        return
    if isinstance(observations, tuple):
        for i, part in enumerate(observations):
            yield from _leaves(part, (*path, str(i)), who)
        return
    values = _array(observations, who)
    flat = values.reshape(len(values), -1) if values.ndim else values.reshape(1, 1)
    for i in range(flat.shape[1]):
        yield "_".join(path if flat.shape[1] == 1 else (*path, str(i))), flat[:, i]


def _array(values: Any, who: str) -> Array:
    try:
        found = np.asarray(values)
    except ValueError as error:
        raise UsageError(f"{who}: these are no array: {error}") from None
    if found.dtype.kind not in "biuf":
        raise UsageError(f"{who}: there must be numbers, not {found.dtype}")
    return found


def _column(values: Any, who: str, n: int) -> Array:
    """n numbers, from an array of (n,), (n, 1) or, trajectory by trajectory, (m, n / m)."""
    found = _array(values, who)
    if found.size != n:
        raise UsageError(f"{who}: there must be {n} numbers, one a step, not an array of shape {found.shape}")
    return found.reshape(-1)


def _flags(values: Any, who: str, n: int) -> NDArray[np.bool_]:
    found = _column(values, who, n)
    if not np.isin(found, (0, 1)).all():
        raise UsageError(f"{who}: there must be true and false, or 1 and 0")
    return found.astype(bool)


def _actions(values: Any, who: str, n: int) -> NDArray[np.int64]:
    found = _column(values, who, n)
    whole = found.astype(np.int64)
    if not (whole == found).all() or (whole < 0).any():
        raise UsageError(f"{who}: only discrete actions 0, 1, 2, … can be converted")
    return whole


def _propensities(data: Any, key: str | None, n: int, who: str) -> dict[str, Array]:
    if key is None:
        return {}
    infos = _field(data, "infos", required=False)
    told = infos.get(key) if isinstance(infos, Mapping) else None
    found = _field(data, key, required=False) if told is None else told
    if found is None:
        raise MissingColumnError(f"{who}there is no {key!r}, in infos or beside them")
    values = _array(found, f"{who}{key}").reshape(-1)
    after_reset = values[1:] if told is not None and len(values) == n + 1 else values
    return {"behavior_prob": _column(after_reset, f"{who}{key}", n).astype(float)}
