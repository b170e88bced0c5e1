"""The base class of all kinds of logs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from secrets import randbits
from typing import Any

import polars as pl

from offpolicy import _core
from offpolicy._util import polars_calls
from offpolicy.errors import OffPolicyError
from offpolicy.logs.reading import steady
from offpolicy.logs.tasks import Progress, Task


class Source(ABC):
    """A log that can be read as often as needed."""

    names: list[str]
    columns: list[str]
    rows: int | None
    #: Whether row numbers are those of the user's log, so that a problem can name a row.
    rows_are_the_logs: bool = True
    #: Whether the log was sorted (`order="any"`) and freed of repeated rows (`dedupe="identical"`) before.
    is_sorted: bool = False
    is_deduped: bool = False

    @classmethod
    @abstractmethod
    def of(cls, log: Any) -> Source | None:
        """Return the source of a log of this kind, or None if the log is of another kind."""

    @abstractmethod
    def scan(
        self, job: _core.Job, names: list[str], threads: int, batch_rows: int | None, progress: Progress
    ) -> _core.Partial:
        """Read the named columns once, on this many threads."""

    @abstractmethod
    def rounds(self, names: list[str]) -> Iterator[list[Task]]:
        """Yield the tasks for `map=` in rounds that fit in memory."""

    @abstractmethod
    def frames(self, names: list[str], rows: int | None = None) -> Iterator[pl.DataFrame]:
        """Yield the named columns as frames of about this many rows, in the order of the log."""

    def check_sound(self, names: Sequence[str]) -> None:  # noqa: B027
        """Refuse files whose named columns cannot be decoded, before Polars reads them and perhaps crashes."""

    @abstractmethod
    def lazy(self) -> pl.LazyFrame:
        """Return a query for the whole log, which works while this source lives."""

    def pieces(self) -> list[pl.LazyFrame]:
        """Return queries for the pieces of the log, such as its files.

        Each piece is sorted by itself; an episode may be spread over several pieces, in any order.
        """
        return [self.lazy()]

    def read(self, names: Sequence[str], rows: int) -> Iterator[pl.DataFrame]:
        """Yield the named columns of one piece after the other, in frames of about this many rows."""
        for piece in self.pieces():
            yield from polars_calls.batches(piece.select(polars_calls.exactly(names)), rows)

    def in_users_terms(self, error: OffPolicyError) -> OffPolicyError:
        """Return the error with the name of the user's file instead of that of a temporary one."""
        return error

    def files(self) -> list[dict[str, Any]]:
        """Return one entry per file of the log, for the record of where the numbers come from."""
        return [{"source": name} for name in self.names]

    @property
    def in_memory(self) -> pl.DataFrame | None:
        """The whole log if it is a frame in memory, otherwise None."""
        return None

    def as_polars(self) -> pl.DataFrame | pl.LazyFrame:
        """Return the log as a frame if it is in memory, otherwise as a query."""
        frame = self.in_memory
        return self.lazy() if frame is None else frame

    @property
    def keeps_files(self) -> bool:
        """Whether the rows are in temporary files, which live as long as the source."""
        return False

    @property
    def is_query(self) -> bool:
        """Whether only another reading can show that the log has changed."""
        return False

    def reopened(self) -> Any:
        """Return the log in the form that is fastest to read again."""
        return self.lazy()

    @property
    def name(self) -> str:
        """The name of the whole log in messages."""
        return several(self.names)

    @cached_property
    def token(self) -> int:
        """A random number that identifies the parts of this log if it has no files."""
        return randbits(64)

    def check_complete(self, rows: int) -> None:
        """Refuse a first reading of this many rows if the source can tell that it ended early."""
        return

    def check_unchanged(self) -> None:
        """Refuse files that have changed since the log was opened; logs without files pass."""
        return

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Refuse files that have changed or cannot be read, in a block that reads the log without `scan`."""
        self.check_unchanged()
        with steady(self.check_unchanged), polars_calls.reading(self):
            yield


def several(names: Sequence[str]) -> str:
    """Return one name for several files, for a message that cannot tell which one it is about.

    >>> several(["a", "b", "c"]), several(["a", "b", "c", "d", "e"])
    ('a, b, c', 'a, b and 3 more files')
    """
    names = list(dict.fromkeys(names))
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} more files"
