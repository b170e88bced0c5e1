"""Helpers of all converters, which make columns of numbers and flags from other libraries' data, and a log of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offpolicy.errors.kinds.of_columns import key_missing
from offpolicy.errors.kinds.of_converters import (
    continuous_actions,
    different_columns,
    longer_than_horizon,
    names_of_the_state,
    wrong_entries,
)

Array: TypeAlias = NDArray[Any]


def make_log(
    ids: Sequence[Any],
    lengths: Sequence[int],
    columns: Mapping[str, Array],
    horizon: int | None,
    state_columns: Sequence[str] | None,
) -> pl.DataFrame:
    """Return the frame of a log, in which the last row of every episode that has not ended is `truncated`."""
    longest = max(lengths)
    if horizon is not None and horizon < longest:
        raise longer_than_horizon(longest=longest, horizon=horizon)
    ends = np.cumsum(lengths) - 1
    truncated = columns.get("truncated", np.zeros(sum(lengths), dtype=bool)).copy()
    truncated[ends] |= ~columns["terminal"][ends]
    steps = np.arange(len(truncated)) - np.repeat(ends + 1 - np.array(lengths), lengths)
    frame = pl.DataFrame({**columns, "truncated": truncated}).select(
        pl.Series("episode", np.repeat(np.array(ids), lengths)),
        pl.Series("step", steps.astype(np.int32)),
        pl.exclude("^next_.*$"),
        pl.col("^next_.*$"),
    )
    return _named(frame, state_columns)


def stacked(episodes: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Concatenate the columns of several episodes."""
    names = {tuple(episode) for episode in episodes}
    if len(names) > 1:
        raise different_columns(columns=" and ".join(str(list(each)) for each in sorted(names)))
    return {name: np.concatenate([episode[name] for episode in episodes]) for name in episodes[0]}


def _named(frame: pl.DataFrame, state_columns: Sequence[str] | None) -> pl.DataFrame:
    if state_columns is None:
        return frame
    found = [name for name in frame.columns if name == "state" or name.startswith("state_")]
    if len(found) != len(state_columns):
        raise names_of_the_state(count=len(found), names=len(state_columns))
    renamed = dict(zip(found, state_columns, strict=True))
    following = {f"next_{old}": f"next_{new}" for old, new in renamed.items()}
    return frame.rename({**renamed, **following}, strict=False)


def entry(data: Any, key: str, who: str = "the dataset", required: bool = True) -> Any:
    """Return an entry of a mapping or an attribute of an object, and refuse data without it if it is required."""
    found = data.get(key) if isinstance(data, Mapping) else getattr(data, key, None)
    if found is None and required:
        raise key_missing(who=f"{who} has", key=repr(key), where="")
    return found


def states_of(observations: Any, who: str, n: int | None = None) -> dict[str, Array]:
    """Return one column for each number of an observation; dictionaries and tuples of arrays are flattened."""
    columns = dict(_leaves(observations, ("state",), who))
    for name, values in columns.items():
        if n is not None and len(values) != n:
            raise wrong_entries(who=who, fault=f"there must be {n} of them, not {len(values)} (column {name!r})")
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
        raise wrong_entries(who=who, fault=f"these are no array: {error}") from None
    if found.dtype.kind not in "biuf":
        raise wrong_entries(who=who, fault=f"there must be numbers, not {found.dtype}")
    return found


def column_of(values: Any, who: str, n: int) -> Array:
    """Return n numbers from an array of shape (n,) or (n, 1), or (m, n / m) with one row per trajectory."""
    found = _array(values, who)
    if found.size != n:
        raise wrong_entries(
            who=who, fault=f"there must be {n} numbers, one a step, not an array of shape {found.shape}"
        )
    return found.reshape(-1)


def flags_of(values: Any, who: str, n: int) -> NDArray[np.bool_]:
    """Return n flags, from booleans or from 0 and 1."""
    found = column_of(values, who, n)
    if not np.isin(found, (0, 1)).all():
        raise wrong_entries(who=who, fault="there must be true and false, or 1 and 0")
    return found.astype(bool)


def actions_of(values: Any, who: str, n: int) -> NDArray[np.int64]:
    """Return n actions, and refuse any that is not a whole number of at least 0."""
    found = column_of(values, who, n)
    whole = found.astype(np.int64)
    if not (whole == found).all() or (whole < 0).any():
        raise continuous_actions(what=who, actions="actions 0, 1, 2, …", done="converted")
    return whole


def propensities_of(data: Any, key: str | None, n: int, who: str) -> dict[str, Array]:
    """Return the column `behavior_prob` if a key is given, from `infos` or else from the data themselves."""
    if key is None:
        return {}
    infos = entry(data, "infos", required=False)
    told = infos.get(key) if isinstance(infos, Mapping) else None
    found = entry(data, key, required=False) if told is None else told
    if found is None:
        raise key_missing(who=f"{who}there is", key=repr(key), where=", in infos or beside them")
    values = _array(found, f"{who}{key}").reshape(-1)
    after_reset = values[1:] if told is not None and len(values) == n + 1 else values
    return {"behavior_prob": column_of(after_reset, f"{who}{key}", n).astype(float)}
