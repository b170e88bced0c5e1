"""A log in parts by a hash of the episode's id, under the default names of its columns.

A frame stays in memory. Of everything else a part is a query, and what is added to it goes to temporary Parquet files,
one for each piece of the log, so that memory is bounded and an episode may still be cut into files in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offpolicy._util import polars_calls
from offpolicy._util.scratch import ScratchFolder
from offpolicy.annotation.annotate import annotate
from offpolicy.annotation.annotated_logs import tallies_of
from offpolicy.errors.kinds.models import domain_has_other_state
from offpolicy.folds import expression, fold_of, share_of
from offpolicy.logs.columns import ESTIMATED, SCORE, WRITTEN, Columns, PolicyColumns
from offpolicy.logs.sources import FrameSource, ParquetSource, Source
from offpolicy.logs.successors import logged_successors
from offpolicy.protocols import Policy, Setting, ValueModel

Frame: TypeAlias = pl.DataFrame | pl.LazyFrame
Stored: TypeAlias = list[pl.DataFrame] | list[str]

TEST, TRAIN = 0, 1
PART = "__offpolicy_part__"
#: Roles whose columns are found under their default names from here on; `behavior_prob` keeps its own, which tells
#: whether it was estimated.
ROLES = ("episode", "step", "reward", "action", "terminal", "truncated")


@dataclass(frozen=True)
class Parts:
    """So many parts, numbered from 0; `of` gives the part of every id."""

    count: int
    of: Callable[[Any], NDArray[np.int64]]

    @classmethod
    def folds(cls, folds: int, seed: int) -> Parts:
        """k folds of about the same size."""
        return cls(folds, partial(fold_of, folds=folds, seed=seed))

    @classmethod
    def train_and_test(cls, fraction: float, seed: int) -> Parts:
        """`TRAIN`, a fraction of the episodes, and `TEST`, the others."""
        return cls(2, lambda ids: np.where(share_of(ids, seed) < fraction, TRAIN, TEST))


class PartedLog:
    """A log whose every row has its part."""

    def __init__(
        self, source: Source, columns: Columns, domain: Setting, parts: Parts, beside: Sequence[str] = ()
    ) -> None:
        """Checks that files can be read; columns `beside` those of the log are kept too."""
        self.source, self.domain, self.states = source, domain, tuple(domain.state_columns)
        ids = columns.need("episode", source.columns)
        added = [*default_names(columns, domain, source.columns), expression(ids, parts.of, pl.Int64).alias(PART)]
        if isinstance(source, FrameSource):
            self.whole: Frame = source.frame.with_columns(added).drop(columns.unread, strict=False)
            self.pieces: list[Frame] = [self.whole]
        else:
            whole, *pieces = (
                query.with_columns(added).drop(columns.unread, strict=False)
                for query in (source.lazy(), *source.pieces())
            )
            self.whole, self.pieces = whole, [*pieces]
        named = ("episode", "step", "reward", "terminal", "truncated", "action")
        wanted = (*named, columns.behavior_prob, ESTIMATED, SCORE, *beside)
        available = ({*source.columns} | {role for role in ROLES if columns.renamed(role)}) - {*columns.unread}
        self.kept = [name for name in dict.fromkeys(wanted) if name in available]
        roles = [name for role in ROLES if (name := getattr(columns, role)) is not None]
        source.check_sound([*wanted, *roles, *columns.states(source.columns, self.states)])
        self.added: list[pl.Expr] = []
        self.renormalised = 0  # rows of probabilities that were divided by their sum

    @cached_property
    def folder(self) -> ScratchFolder:
        """Where a log that is no frame is annotated."""
        return ScratchFolder()

    @cached_property
    def first_step(self) -> int:
        """How the first step of an episode is numbered."""
        return int(self.whole.lazy().select(pl.col("step").min()).collect(engine="streaming").item())

    @cached_property
    def episodes(self) -> dict[int, int]:
        """How many episodes each part has, but for those that have none."""
        first = self.whole.lazy().filter(pl.col("step") == self.first_step)
        return dict(sorted(first.group_by(PART).len().collect(engine="streaming").iter_rows()))

    def others(self, part: int) -> Frame:
        """The log of all parts but one."""
        return self.whole.filter(pl.col(PART) != part).drop(PART)

    def estimated(self, columns: Sequence[pl.Expr]) -> None:
        """Take these columns for those that tell of an estimated π0; they are kept, with the action."""
        self.added = list(columns)
        names = [column.meta.output_name() for column in columns]
        before = [name for name in self.kept if name != SCORE]
        self.kept = list(dict.fromkeys([*before, *names, "action"]))

    def annotated(
        self,
        part: int,
        policies: Mapping[str, Policy],
        models: Sequence[ValueModel],
        into: Mapping[str, PolicyColumns],
        threads: int | None,
    ) -> Stored:
        """The rows of a part with what policies and models say of them, piece by piece.

        With P̂/P, an episode may be cut into pieces only where the log has columns of the next state.
        """
        columns, targets, outputs = (
            Columns(state=self.states),
            list(policies.values()),
            [into[name] for name in policies],
        )
        names = [*self.kept, *(name for each in into.values() for name in written(each))]
        frames: list[pl.DataFrame] = []
        paths: list[str] = []
        ratio = any(each.transition_ratio is not None for each in outputs)
        domain, pieces = (self.domain, self._with_successors()) if ratio else (None, self.pieces)
        for number, piece in enumerate(pieces):
            rows: Any = piece.with_columns(self.added).filter(pl.col(PART) == part)
            made = annotate(rows, targets, models, columns, outputs, self.first_step, threads, domain)
            rows = made.select(names)
            if isinstance(rows, pl.DataFrame):
                frames.append(rows)
            else:
                path = self.folder.path / f"{part}-{number}.parquet"
                polars_calls.write_parquet(rows, path, {})
                paths.append(str(path))
            self.renormalised += sum(tally.rows for tally in tallies_of(made))
        return frames or paths

    def _with_successors(self) -> list[Frame]:
        """Pieces that have the next state of every row in them: the whole log where it is in the next row."""
        schema = self.whole.lazy().collect_schema()
        logged = logged_successors(self.states, "terminal" if "terminal" in schema else None, schema)
        return self.pieces if logged else [self.whole]

    def together(self, stored: Iterable[Stored]) -> Source:
        """What was annotated, as a log to evaluate; its problems are those of the user's log, but for their rows."""
        every: list[Any] = [piece for part in stored for piece in part]
        made: Source
        if isinstance(every[0], pl.DataFrame):
            made = FrameSource(pl.concat(every))
        else:
            made = ParquetSource(every, keep=self.folder)
        made.names = [", ".join(self.source.names)] * len(every)
        made.rows_are_the_logs = False
        return made


def default_names(columns: Columns, domain: Setting, available: list[str]) -> list[pl.Expr]:
    """Renamed columns under their default names, and those of the state under the domain's."""
    renamed = {role: columns.need(role, available) for role in ROLES if columns.renamed(role)}
    states = columns.states(available, domain.state_columns)
    if len(states) != len(domain.state_columns):
        raise domain_has_other_state(
            name=repr(domain.name), state=", ".join(domain.state_columns), found=", ".join(states)
        )
    for ours, theirs in zip(domain.state_columns, states, strict=True):
        pairs = ((ours, theirs), (f"next_{ours}", f"next_{theirs}"))
        renamed |= {name: column for name, column in pairs if name != column and column in available}
    return [polars_calls.column(column).alias(name) for name, column in renamed.items()]


def written(columns: PolicyColumns) -> list[str]:
    """The columns that `annotate` writes."""
    return [name for role in WRITTEN if (name := getattr(columns, role)) is not None]
