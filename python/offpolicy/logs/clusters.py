"""Clusters of episodes, such as those of one user: only episodes of different clusters are independent.

    SE² = G/(G − 1) · Σ_g (Σ_{i in g} (ψ_i − ψ̄))² / n²

with G clusters of n trajectories in all and the influence values ψ_i (`Samples.influence`), whose mean is ψ̄. The
intervals `t` and `normal` use this standard error, `t` with G − 1 degrees of freedom; a bootstrap resamples clusters.
If every trajectory is a cluster of its own, the formula gives the standard error of independent trajectories.

Liang & Zeger, "Longitudinal data analysis using generalized linear models" (Biometrika 1986); Cameron & Miller, "A
practitioner's guide to cluster-robust inference" (Journal of Human Resources 2015).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offpolicy._util import polars_calls, words
from offpolicy._util.exact_sums import sums_by
from offpolicy._util.interruptible import interruptible
from offpolicy._util.phrase import phrase
from offpolicy.errors import SHOWN, BadLogError
from offpolicy.errors.kinds.of_columns import missing_column, wrong_type
from offpolicy.errors.kinds.of_files import changed_log
from offpolicy.logs.columns import Columns, instead_of
from offpolicy.logs.problem import Problem
from offpolicy.logs.sources import Source
from offpolicy.protocols import Floats

#: Rows read at a time.
ROWS = 1 << 20
#: Common names of a column with the id of a person or device that can have several episodes.
SOMEBODY = re.compile(
    r"(user|patient|customer|subject|visitor|member|account|device|household|client|person|participant|player|student)"
    r"([_ -]?(id|ids|key|no|nr|number|name|uid|uuid))?",
    re.IGNORECASE,
)
TEXTS = (pl.String, pl.Categorical, pl.Enum)
EXTREMES = {"least ": pl.Expr.min, "largest ": pl.Expr.max}


@dataclass(frozen=True, eq=False)
class Clusters:
    """The cluster of every episode, by the ids in one column of the log."""

    column: str
    table: pl.DataFrame = field(repr=False)  # columns `episode` and `cluster`, one row per episode

    @classmethod
    def read(cls, source: Source, columns: Columns, column: str, episodes: int | None = None) -> Clusters:
        """Read the clusters from a column, and refuse one that is null anywhere or changes within an episode.

        `episodes` is the number of episodes that an earlier reading found: a log that now has another number of them
        has changed and is refused.
        """
        if column not in source.columns:
            raise missing_column(
                name=repr(column),
                what=phrase(" (for {cluster})", cluster=words.argument("cluster")),
                there=instead_of(column, source.columns),
            )
        found, types = _by_episode(source, columns.episode, [column])
        if not _is_id(types[column]):
            raise wrong_type(
                column=phrase("{column} (for {cluster})", column=repr(column), cluster=words.argument("cluster")),
                expected="whole numbers or text",
                found=types[column],
            )
        if episodes is not None and found.height != episodes:
            raise changed_log(
                file=source.name, why=f"it had {episodes} episodes, and {found.height} when it was read again"
            )
        least, largest, nulls = (pl.col(f"{what} {column}") for what in ("least", "largest", "nulls"))
        wrong = found.filter((least != largest) | (nulls > 0)).sort("episode")
        if wrong.height:
            raise BadLogError(_problems(source, columns, column, wrong["episode"].head(SHOWN)), wrong.height)
        return cls(column, found.select("episode", least.alias("cluster")))

    @cached_property
    def count(self) -> int:
        """The number of clusters, G."""
        return self.table["cluster"].n_unique()

    @cached_property
    def largest(self) -> int:
        """The number of episodes of the largest cluster."""
        sizes: NDArray[np.int64] = self.table["cluster"].value_counts()["count"].to_numpy()
        return int(sizes.max())

    def of(self, episodes: pl.Series) -> pl.Series:
        """Return the id of the cluster of every episode.

        >>> import polars as pl
        >>> from offpolicy.logs.clusters import Clusters
        >>> Clusters("user", pl.DataFrame({"episode": [1, 2], "cluster": ["ann", "bob"]})).of(pl.Series([2, 1, 2]))
        shape: (3,)
        Series: 'cluster' [str]
        [
            "bob"
            "ann"
            "bob"
        ]
        """
        asked = pl.DataFrame({"episode": episodes.cast(self.table.schema["episode"])})
        return asked.join(self.table, on="episode", how="left", maintain_order="left")["cluster"]

    def sums(self, episodes: pl.Series, x: Floats) -> Floats:
        """Return Σ x_i of every cluster, with the same bits for any order of the episodes."""
        index = self.of(episodes).rank("dense").to_numpy().astype(np.int64) - 1
        return sums_by(index, x, self.count)

    def note(self) -> str:
        """Return a remark that says which clusters the standard errors are made from."""
        several = f"{self.count} clusters (column {self.column!r}) of up to {self.largest} episodes"
        return f"standard errors are those of {several}: the intervals normal, t and bootstrap use them"


def hints(source: Source, columns: Columns) -> list[str]:
    """Return one hint for each column that looks like the id of a person or device with several episodes.

    If no column name matches, nothing is read. Otherwise this costs one reading of the matching columns and of the
    episodes' ids, and memory for one row per episode.
    """
    names = [name for name in source.columns if SOMEBODY.fullmatch(name) and name != columns.episode]
    if not names:
        return []
    found, types = _by_episode(source, columns.episode, names)
    names = [name for name in names if _is_id(types[name])]
    return [hint for name in names if (hint := _hint(found, name)) is not None]


def _hint(found: pl.DataFrame, name: str) -> str | None:
    least, largest = found[f"least {name}"], found[f"largest {name}"]
    if (least != largest).any():
        return None
    values, nulls = least.drop_nulls().n_unique(), least.null_count()
    if not 1 < values < found.height:
        return None
    return (
        f"the log has a column {name!r} with {values} values for {found.height} episodes"
        + (f" ({nulls} of them without one)" if nulls else "")
        + f": if episodes of one {name} "
        f"depend on each other, standard errors are too small: evaluate(..., cluster={name!r})"
    )


def _is_id(dtype: pl.DataType) -> bool:
    return dtype.is_integer() or dtype in TEXTS or dtype == pl.Null


def _by_episode(source: Source, episode: str, names: Sequence[str]) -> tuple[pl.DataFrame, pl.Schema]:
    """Return each episode's least and largest value and number of nulls in the named columns, and the columns' types.

    A column that cannot be an id has a type, but no values.
    """

    def read(go_on: Callable[[], None]) -> tuple[pl.DataFrame, pl.Schema]:
        with polars_calls.reading(source):
            return found(go_on)

    def found(go_on: Callable[[], None]) -> tuple[pl.DataFrame, pl.Schema]:
        parts, schema, ids = [], pl.Schema(), list[str]()
        for frame in source.frames(list(dict.fromkeys([episode, *names])), ROWS):
            go_on()
            schema = frame.schema
            ids = [name for name in names if _is_id(schema[name])]
            columns = [as_key(name, schema[name]) for name in ids]
            least, largest = ([of(x).name.prefix(what) for x in columns] for what, of in EXTREMES.items())
            nulls = [x.null_count().name.prefix("nulls ") for x in columns]
            key = as_key(episode, schema[episode]).alias("episode")
            parts.append(frame.group_by(key).agg(*least, *largest, *nulls))
        least, largest = ([of(pl.col(what + name)) for name in ids] for what, of in EXTREMES.items())
        nulls = [pl.col(f"nulls {name}").sum() for name in ids]
        if not parts:
            raise changed_log(file=source.name, why="it had rows, and has none when it is read again")
        return pl.concat(parts).group_by("episode").agg(*least, *largest, *nulls), schema

    return interruptible(read)


def as_key(name: str, dtype: pl.DataType) -> pl.Expr:
    """Return a column of ids that can be compared; categories are compared as text."""
    return polars_calls.column(name).cast(pl.String) if dtype in TEXTS else polars_calls.column(name)


def _problems(source: Source, columns: Columns, column: str, episodes: pl.Series) -> list[Problem]:
    """Return one problem per episode: its first row whose value is null or differs from that of the first row."""
    rows = []
    for name, piece in zip(source.names, source.pieces(), strict=True):
        schema = piece.collect_schema()
        some = piece.select(
            as_key(columns.episode, schema[columns.episode]).cast(episodes.dtype).alias("episode"),
            polars_calls.column(columns.step).cast(pl.Int64).alias("step"),
            polars_calls.column(column).cast(pl.String).alias("value"),
            pl.lit(name).alias("file"),
        )
        rows.append(some.filter(pl.col("episode").is_in(episodes.implode())).collect(engine="streaming"))
    first = pl.col("value").first().over("episode")
    wrong = pl.col("value").is_null() | (pl.col("value") != first)
    ordered = pl.concat(rows).sort("episode", "step").with_columns(first.alias("first"))
    found = ordered.filter(wrong).unique("episode", keep="first", maintain_order=True)
    return [_problem(column, **row) for row in found.iter_rows(named=True)]


def _problem(column: str, episode: int | str, step: int, value: str | None, file: str, first: str | None) -> Problem:
    kind, why = ("null", "every episode needs a cluster")
    if value is not None:
        kind, why = "not-constant", f"an episode has one cluster, and this one began with {first!r}"
    return Problem(kind, file, None, episode, step, column, "null" if value is None else value, why)
