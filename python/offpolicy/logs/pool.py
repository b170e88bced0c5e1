"""The pool of several logs: one log with the episodes of all, each with the name of the log that it comes from.

Every row keeps its own `behavior_prob`, and importance weights depend on the behaviour policy only through that number.
Logs of different behaviour policies may therefore be pooled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from offpolicy._util import polars_calls, words
from offpolicy.errors.kinds.of_columns import column_of_some, column_there_already, no_common_type, unnamed_column
from offpolicy.errors.kinds.of_logs import name_of_a_log, names_of_logs
from offpolicy.logs.columns import Columns
from offpolicy.logs.sources import Source, open_log

#: The separator between the name of a log and the id of an episode in it.
BETWEEN = "/"


def pool(logs: Mapping[str, Any], *, columns: Columns | None = None, logger: str = "logger") -> Any:
    """Return the logs one after the other, with ids such as `v1/17` and a column that names each row's log.

    Parameters
    ----------
    logs
        Any logs that `evaluate` reads, by name; all must have the same columns.
    columns
        The name of the episode column if it is not `episode`. It must be the same in all logs.
    logger
        The column to write the names of the logs to.

    Returns
    -------
    A frame if all logs are in memory, otherwise a lazy frame that reads the files whenever it is collected.

    Examples
    --------
    >>> import offpolicy as op
    >>> logs = {"v1": op.demo_log(episodes=20, seed=1), "v2": op.demo_log(episodes=30, seed=2)}
    >>> log = op.pool(logs)
    >>> log["episode"].unique(maintain_order=True).to_list()[19:21], log["logger"].unique().sort().to_list()
    (['v1/19', 'v2/0'], ['v1', 'v2'])
    >>> op.evaluate(log, estimators=["mc"]).episodes
    50
    """
    if not isinstance(logs, Mapping) or not logs:
        raise names_of_logs(example='op.pool({"v1": log1, "v2": log2})')
    for name in logs:
        if not isinstance(name, str) or not name or BETWEEN in name:
            raise name_of_a_log(between=repr(BETWEEN), found=repr(name))
    episode, sources = (columns or Columns()).episode, {name: open_log(log) for name, log in logs.items()}
    names = _common_names(sources, episode, logger)
    parts = [_part(name, source, episode, logger).select([*names, logger]) for name, source in sources.items()]
    types = _common_types(list(sources), [part.collect_schema() for part in parts])
    pooled = pl.concat(part.cast(types) for part in parts)
    return pooled.collect() if all(source.in_memory is not None for source in sources.values()) else pooled


def _part(name: str, source: Source, episode: str, logger: str) -> pl.LazyFrame:
    """Return a log whose episode ids begin with the name of the log."""
    query = source.lazy()
    if source.keeps_files:
        kept = query.collect_schema()[episode]
        query = query.with_columns(pl.col(episode).map_batches(_held_by(source), return_dtype=kept))
    prefixed = pl.concat_str(pl.lit(name + BETWEEN), pl.col(episode).cast(pl.String))
    return query.with_columns(prefixed.alias(episode), pl.lit(name).alias(logger))


def _held_by(source: Source) -> Any:
    """Return an identity function for a query, which keeps the source and its temporary files alive with the query."""

    def unchanged(column: pl.Series, keep: object = source) -> pl.Series:
        return column

    return unchanged


def _common_names(sources: Mapping[str, Source], episode: str, logger: str) -> list[str]:
    """Return the columns of all logs, and refuse one that only some have: its absence may change what rows mean."""
    (first, mine), *others = ((name, source.columns) for name, source in sources.items())
    for name, theirs in ((first, mine), *others):
        if episode not in theirs:
            raise unnamed_column(
                owner=f"log {name!r}", name=repr(episode), there="", it="it", column=words.column("episode")
            )
        if logger in theirs:
            raise column_there_already(name=repr(name), column=repr(logger), argument=words.argument("logger"))
        for owner, other, lacking in (
            (first, name, [column for column in mine if column not in theirs]),
            (name, first, [column for column in theirs if column not in mine]),
        ):
            if lacking:
                found = f"log {other!r} has no column {lacking[0]!r}, which {owner!r} has"
                raise column_of_some(found=found, owner=repr(owner))
    return mine


def _common_types(names: list[str], schemas: list[pl.Schema]) -> pl.Schema:
    common = pl.Schema(schemas[0])
    for name, schema in zip(names[1:], schemas[1:], strict=True):
        for column, found in schema.items():
            wider = polars_calls.common_type(common[column], found)
            if wider is None:
                raise no_common_type(column=repr(column), found=found, name=repr(name), before=common[column])
            common[column] = wider
    return common
