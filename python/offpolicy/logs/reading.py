"""What a pass has read of a log, so that a log which changes between two passes is seen.

Files are known by size, time, inode and footer (`ParquetSource`). Of every log each pass counts rows and episodes and
adds up, in any order, a fingerprint of each episode's id and length; of a log without files also the
bits of every number.
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
    """What one pass has read: equal for two passes over one log, in the columns that both read."""

    episodes: int
    rows: int
    ids: int
    columns: Mapping[str, int]

    @classmethod
    def of(cls, whole: _core.Whole) -> Reading:
        """Return what a pass has read."""
        rows, ids, columns = whole.content
        return cls(whole.episodes, rows, ids, dict(columns))

    def check(self, later: Reading, name: str, but: Collection[str] = ()) -> None:
        """Refuse a log of which a later pass has read something else; columns in `but` may differ."""
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
    """The same of what another reader than the core has read, as far as that is cheap: counts, and numbers as they are.

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
        """Add the rows of a frame, and its columns of floats."""
        self.rows += frame.height
        for column in frame.iter_columns():
            if column.dtype == pl.Float64:
                bits = int(column.to_numpy().view(np.uint64).sum(dtype=np.uint64))
                self.columns[column.name] = (self.columns.get(column.name, 0) + bits) % 2**64

    def add_episodes(self, ids: pl.Series) -> None:
        """Add the episodes of rows in order, of which no other frame has any."""
        self.episodes += ids.rle().len()

    def check(self, first: Reading, name: str) -> None:
        """Refuse a log of which the first pass has read something else."""
        first.check(replace(first, episodes=self.episodes, rows=self.rows, columns=self.columns), name)


@contextmanager
def steady(check: Callable[[], None]) -> Iterator[None]:
    """Call what refuses a changed log when the work is done, and when it fails: the change may be why."""
    try:
        yield
    except (OffPolicyError, pl.exceptions.PolarsError):
        check()
        raise
    check()
