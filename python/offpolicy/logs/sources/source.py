"""What every kind of log can do."""

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
    #: Rows are those of the user's log, so that a problem can name one.
    rows_are_the_logs: bool = True
    #: What was done with the log before: `order="any"`, `dedupe="identical"`.
    is_sorted: bool = False
    is_deduped: bool = False

    @classmethod
    @abstractmethod
    def of(cls, log: Any) -> Source | None:
        """Return the source of a log of this kind; None where it is of another kind."""

    @abstractmethod
    def scan(
        self, job: _core.Job, names: list[str], threads: int, batch_rows: int | None, progress: Progress
    ) -> _core.Partial:
        """Reads the named columns once, on so many threads."""

    @abstractmethod
    def rounds(self, names: list[str]) -> Iterator[list[Task]]:
        """Tasks for `map=`, as many at a time as may be in memory."""

    @abstractmethod
    def frames(self, names: list[str], rows: int | None = None) -> Iterator[pl.DataFrame]:
        """The named columns as frames of about so many rows, in the order of the log."""

    def check_sound(self, names: Sequence[str]) -> None:  # noqa: B027
        """Refuse files whose named columns cannot be decoded, before Polars reads them; it may not survive them."""

    @abstractmethod
    def lazy(self) -> pl.LazyFrame:
        """A query for the whole log, which works while this source lives."""

    def pieces(self) -> list[pl.LazyFrame]:
        """The same in pieces, of which each is sorted by itself; an episode may be in several, in any order."""
        return [self.lazy()]

    def read(self, names: Sequence[str], rows: int) -> Iterator[pl.DataFrame]:
        """Yield the named columns of one piece after the other, in frames of about so many rows."""
        for piece in self.pieces():
            yield from polars_calls.batches(piece.select(polars_calls.exactly(names)), rows)

    def in_users_terms(self, error: OffPolicyError) -> OffPolicyError:
        """Return the error with the user's file in the place of a temporary one."""
        return error

    def files(self) -> list[dict[str, Any]]:
        """Where the numbers come from."""
        return [{"source": name} for name in self.names]

    @property
    def in_memory(self) -> pl.DataFrame | None:
        """The whole log where it is a frame in memory."""
        return None

    def as_polars(self) -> pl.DataFrame | pl.LazyFrame:
        """Return the log as Polars has it: a frame where it is in memory, otherwise a query."""
        frame = self.in_memory
        return self.lazy() if frame is None else frame

    @property
    def keeps_files(self) -> bool:
        """True where the rows lie in temporary files, which live as long as the source does."""
        return False

    @property
    def is_query(self) -> bool:
        """True where only another reading can tell whether the log is still what it was."""
        return False

    def reopened(self) -> Any:
        """Return the log in the form in which others read it fastest, as often as they like."""
        return self.lazy()

    @property
    def name(self) -> str:
        """How the log is called, all of it."""
        return several(self.names)

    @cached_property
    def token(self) -> int:
        """A number that marks the parts of this log where it has no files to know them by."""
        return randbits(64)

    def check_complete(self, rows: int) -> None:
        """Refuse a first reading of so many rows that ended early, where the source can tell."""
        return

    def check_unchanged(self) -> None:
        """Refuse files that are not what they were when the log was opened; other logs have none."""
        return

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Refuse files that change before or while the log is read otherwise than by `scan`, or cannot be read."""
        self.check_unchanged()
        with steady(self.check_unchanged), polars_calls.reading(self):
            yield


def several(names: Sequence[str]) -> str:
    """Return what a message calls several files at once, where it cannot tell which one it means.

    >>> several(["a", "b", "c"]), several(["a", "b", "c", "d", "e"])
    ('a, b, c', 'a, b and 3 more files')
    """
    names = list(dict.fromkeys(names))
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} more files"
