"""Summaries of what each pass has read, by which a log that changes between two passes is detected.

Files are recognised by size, time, inode and footer (`ParquetSource`). For every log, each pass counts rows and
episodes and adds up a fingerprint of each episode's id and length, in any order. For a log without files it also adds
up the bits of every number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from offpolicy import _core
from offpolicy.errors import OffPolicyError
from offpolicy.errors.kinds.of_files import changed_log


@dataclass(frozen=True)
class Reading:
    """The summary of one pass. Two passes over an unchanged log agree in every column that both read."""

    episodes: int
    rows: int
    ids: int
    columns: Mapping[str, int]

    @classmethod
    def of(cls, whole: _core.Whole) -> Reading:
        """Return the summary of a pass of the core."""
        rows, ids, columns = whole.content
        return cls(whole.episodes, rows, ids, dict(columns))

    def check(self, later: Reading, name: str, but: Collection[str] = ()) -> None:
        """Refuse a log that a later pass found changed; the columns in `but` may differ."""
        common = (column for column in self.columns if column in later.columns and column not in but)
        other = next((column for column in common if self.columns[column] != later.columns[column]), None)
        if self.episodes != later.episodes:
            why = f"it had {self.episodes} episodes when it was read first, and {later.episodes} when it was read again"
        elif self.rows != later.rows:
            why = f"it had {self.rows} rows when it was read first, and {later.rows} when it was read again"
        elif self.ids != later.ids:
            why = "its episodes had other ids or lengths when it was read again"
        elif other is not None:
            why = f"column {other!r} had other values when it was read again"
        else:
            return
        raise changed_log(file=name, why=why)


@dataclass
class Recount:
    """The same summary for a reading outside the core, as far as it is cheap: counts, and the bits of float columns.

    >>> recount = Recount()
    >>> recount.add(pl.DataFrame({"reward": [1.0, 2.0], "step": [0, 1]}))
    >>> recount.add_episodes(pl.Series([7, 7, 8]))
    >>> recount.rows, recount.episodes, list(recount.columns)
    (2, 2, ['reward'])
    """

    rows: int = 0
    episodes: int = 0
    columns: dict[str, int] = field(default_factory=dict)

    def add(self, frame: pl.DataFrame) -> None:
        """Add the rows of a frame and the bits of its float columns."""
        self.rows += frame.height
        for column in frame.iter_columns():
            if column.dtype == pl.Float64:
                bits = int(column.to_numpy().view(np.uint64).sum(dtype=np.uint64))
                self.columns[column.name] = (self.columns.get(column.name, 0) + bits) % 2**64

    def add_episodes(self, ids: pl.Series) -> None:
        """Add the episodes of sorted rows; no other frame may have rows of them."""
        self.episodes += ids.rle().len()

    def check(self, first: Reading, name: str) -> None:
        """Refuse a log that has changed since the first pass."""
        first.check(replace(first, episodes=self.episodes, rows=self.rows, columns=self.columns), name)


@contextmanager
def steady(check: Callable[[], None]) -> Iterator[None]:
    """Check that the log is unchanged after the work, also if the work fails: a change may be the cause."""
    try:
        yield
    except (OffPolicyError, pl.exceptions.PolarsError):
        check()
        raise
    check()
