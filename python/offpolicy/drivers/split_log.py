"""Logs that are split by episode: models are fitted to one side and annotate the other, which is then evaluated.

`Sides` are the two sides of one split. `improve` splits by a fraction of the episodes, `compare` and the paper's
experiments by their order. `SplitLog`, for `cross_fit`, is a whole log with the default names of columns, in several
parts by a hash of the episode's id; each part is evaluated once.

A frame stays in memory. For any other log a side is a query, and an annotated part goes to temporary Parquet files, one
for each piece of the log. Memory is then bounded, and an episode may still be spread over files in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offpolicy._util import polars_calls
from offpolicy._util.scratch import ScratchFolder
from offpolicy.annotation.annotate import annotate
from offpolicy.annotation.annotated_logs import tallies_of
from offpolicy.annotation.growing import GrowingLog
from offpolicy.errors import BadLogError
from offpolicy.errors.kinds.of_models import domain_has_other_state
from offpolicy.folds import expression, fold_of, share_of, split
from offpolicy.logs.columns import ESTIMATED, SCORE, WRITTEN, Columns, PolicyColumns
from offpolicy.logs.sources import FrameSource, ParquetSource, Source
from offpolicy.logs.steps import counted_from, smallest_step, steps_of
from offpolicy.logs.successors import logged_successors
from offpolicy.protocols import Model, ModelFitter, Policy, Setting, ValueModel, values_of

Frame: TypeAlias = pl.DataFrame | pl.LazyFrame
Stored: TypeAlias = list[pl.DataFrame] | list[str]

TEST, TRAIN = 0, 1
PART = "__offpolicy_part__"
#: Roles whose columns get their default names; `behavior_prob` keeps its own, which tells whether it was estimated.
ROLES = ("episode", "step", "reward", "action", "terminal", "truncated")


@dataclass(frozen=True)
class Sides:
    """Two logs without a common episode: models are fitted to `train` and annotate `test`.

    >>> import offpolicy as op
    >>> from offpolicy.testing import Walk
    >>> walk = Walk()
    >>> log = walk.simulate(walk.behavior, 100, seed=0)
    >>> sides = Sides.by_fraction(log, 0.5, walk)
    >>> values = sides.values(sides.fit(op.fitter("tabular")), [walk.behavior])
    >>> sides.annotated([op.PolicyColumns(q_hat="q", v_hat="v")], values=values).columns[-2:]
    ['q', 'v']
    """

    train: Any
    test: Any
    domain: Setting
    first_step: int | None = None  # None: by the smallest step of `test`
    threads: int | None = None

    @classmethod
    def by_fraction(
        cls, log: Any, fraction: float, domain: Setting, first_step: int | None = None, threads: int | None = None
    ) -> Sides:
        """Return a split by a hash of the episodes' ids: a fraction of them to fit to, the others to evaluate."""
        train, test = split(log, fraction)
        return cls(train, test, domain, first_step, threads)

    @classmethod
    def by_episodes(cls, log: pl.DataFrame, start: int, end: int, domain: Setting, threads: int | None = None) -> Sides:
        """Return a split of a simulated log: episodes `start` to `end` - 1 to evaluate, the others to fit to."""
        inside = pl.col("episode").is_between(start, end, closed="left")
        return cls(log.filter(~inside), log.filter(inside), domain, threads=threads)

    def lacking(self, fraction: float) -> str | None:
        """Return why a split at this fraction cannot be used, or None if it can."""
        if fraction > 0 and _is_empty(self.train):
            return f"no episode is in the first {fraction:g} of the log, to train on"
        if _is_empty(self.test):
            return f"no episode is in the log beyond its first {fraction:g}, to evaluate on"
        return None

    def fit(self, fitter: ModelFitter) -> Model:
        """Fit a model to `train`; problems have no row, since rows of `train` are not those of the whole log."""
        try:
            return fitter.fit(self.train, self.domain)
        except BadLogError as error:
            raise BadLogError([replace(p, file=None, row=None) for p in error.problems], error.found) from None

    def values(self, model: Model, policies: Sequence[Policy]) -> list[ValueModel]:
        """Return Q̂, V̂ and R̂ of each policy, for the horizon and discount of the domain."""
        return values_of(model, policies, self.domain.horizon, self.domain.discount)

    def annotated(
        self,
        into: PolicyColumns | Sequence[PolicyColumns],
        policy: Policy | Sequence[Policy] | None = None,
        values: Sequence[ValueModel] | None = None,
        transitions: Setting | None = None,
    ) -> Any:
        """Return `test` annotated by policies and values; with a domain `transitions`, its P makes P̂/P."""
        columns = Columns.of(self.domain)
        return annotate(self.test, policy, values, columns, into, self.first_step, self.threads, transitions)

    def growing(self, transitions: Setting | None) -> GrowingLog:
        """Return `test` as a log to which annotations can be added; with a domain `transitions`, its P makes P̂/P."""
        return GrowingLog(self.test, Columns.of(self.domain), self.first_step, self.threads, transitions)


@dataclass(frozen=True)
class Parts:
    """A partition of the episodes into `count` parts, numbered from 0; `of` returns the part of every id."""

    count: int
    of: Callable[[Any], NDArray[np.int64]]

    @classmethod
    def folds(cls, folds: int, seed: int) -> Parts:
        """Return k folds of about the same size."""
        return cls(folds, partial(fold_of, folds=folds, seed=seed))

    @classmethod
    def train_and_test(cls, fraction: float, seed: int) -> Parts:
        """Return two parts: `TRAIN`, a fraction of the episodes, and `TEST`, the others."""
        return cls(2, lambda ids: np.where(share_of(ids, seed) < fraction, TRAIN, TEST))


class SplitLog:
    """A log in which every row belongs to a part."""

    def __init__(
        self, source: Source, columns: Columns, domain: Setting, parts: Parts, beside: Sequence[str] = ()
    ) -> None:
        """Check that files can be read; the columns in `beside` are kept beside those of the default roles."""
        self.source, self.domain, self.states = source, domain, tuple(domain.state_columns)
        ids = columns.need("episode", source.columns)
        added = [*default_names(columns, domain, source.columns), expression(ids, parts.of, pl.Int64).alias(PART)]
        if (frame := source.in_memory) is not None:
            self.whole: Frame = frame.with_columns(added).drop(columns.unread, strict=False)
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
        self.renormalised = 0  # how many rows of probabilities were divided by their sum

    @cached_property
    def folder(self) -> ScratchFolder:
        """The folder of the annotated files of a log that is not in memory."""
        return ScratchFolder()

    @cached_property
    def first_step(self) -> int:
        """The number of an episode's first step, 0 or 1."""
        return counted_from(smallest_step(steps_of(self.whole.lazy(), "step")))

    @cached_property
    def episodes(self) -> dict[int, int]:
        """The number of episodes of each part that is not empty."""
        first = self.whole.lazy().filter(pl.col("step") == self.first_step)
        return dict(sorted(first.group_by(PART).len().collect(engine="streaming").iter_rows()))

    def sides(self, part: int, threads: int | None = None) -> Sides:
        """Return the split with this part to evaluate and all others to fit to."""
        train = self.whole.filter(pl.col(PART) != part).drop(PART)
        return Sides(train, self._rows(self.whole, part), self.domain, self.first_step, threads)

    def _rows(self, piece: Frame, part: int) -> Frame:
        return piece.with_columns(self.added).filter(pl.col(PART) == part)

    def estimated(self, columns: Sequence[pl.Expr]) -> None:
        """Add these columns, which describe an estimated π0, and keep them and the action."""
        self.added = list(columns)
        names = [column.meta.output_name() for column in columns]
        before = [name for name in self.kept if name != SCORE]
        self.kept = list(dict.fromkeys([*before, *names, "action"]))

    def stored(
        self,
        part: int,
        sides: Sides,
        policies: Mapping[str, Policy],
        values: Sequence[ValueModel],
        into: Mapping[str, PolicyColumns],
    ) -> Stored:
        """Annotate the rows of a part by policies and values, piece by piece, and return the frames or files.

        With P̂/P, an episode may be spread over pieces only if the log has columns of the next state.
        """
        targets, outputs = list(policies.values()), [into[name] for name in policies]
        names = [*self.kept, *(name for each in into.values() for name in written(each))]
        frames: list[pl.DataFrame] = []
        paths: list[str] = []
        ratio = any(each.transition_ratio is not None for each in outputs)
        domain, pieces = (self.domain, self._with_successors()) if ratio else (None, self.pieces)
        for number, piece in enumerate(pieces):
            side = sides if piece is self.whole else replace(sides, test=self._rows(piece, part))
            made = side.annotated(outputs, targets, values, domain)
            rows: Frame = made.select(names)
            if isinstance(rows, pl.DataFrame):
                frames.append(rows)
            else:
                path = self.folder.path / f"{part}-{number}.parquet"
                polars_calls.write_parquet(rows, path, {})
                paths.append(str(path))
            self.renormalised += sum(tally.rows for tally in tallies_of(made))
        return frames or paths

    def _with_successors(self) -> list[Frame]:
        """Return pieces that contain the next state of every row: the whole log if that is in the next row."""
        schema = self.whole.lazy().collect_schema()
        logged = logged_successors(self.states, "terminal" if "terminal" in schema else None, schema)
        return self.pieces if logged else [self.whole]

    def together(self, stored: Iterable[Stored]) -> Source:
        """Return the annotated parts as one log to evaluate; its problems name the user's files, but no rows."""
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
    """Return the renamed columns under their default names, and those of the state under the domain's."""
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


def _is_empty(log: Any) -> bool:
    return bool(log.lazy().head(1).collect().is_empty())


def written(columns: PolicyColumns) -> list[str]:
    """Return the names of the columns that `annotate` writes."""
    return [name for role in WRITTEN if (name := getattr(columns, role)) is not None]
