"""Polars queries, which yield their rows in batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import polars as pl

from offpolicy import _core
from offpolicy._util import polars_calls
from offpolicy._util.carried import kept_error
from offpolicy._util.forked import check_not_forked
from offpolicy.errors import OffPolicyError, UnreadableError
from offpolicy.errors.kinds.of_files import changed_log, unreadable_file
from offpolicy.logs.sources.source import Source
from offpolicy.logs.tasks import FrameTask, Progress, Task

#: How many frames are handed to `map=` at a time.
ROUND = 16


class StreamSource(Source):
    """A query that is run for each reading and yields its rows in batches."""

    def __init__(self, name: str, query: pl.LazyFrame) -> None:
        """Find the column names without running the query."""
        check_not_forked()
        self.query, self.names, self.rows = query, [name], None
        with polars_calls.reading(query), naming(query):
            self.columns = query.collect_schema().names()

    @classmethod
    def of(cls, log: Any) -> Source | None:
        """Return the source of a lazy frame."""
        return cls("query", log) if isinstance(log, pl.LazyFrame) else None

    def scan(
        self, job: _core.Job, names: list[str], threads: int, batch_rows: int | None, progress: Progress
    ) -> _core.Partial:
        """Scan the stream of batches on threads that take turns at it."""
        with naming(self.query):
            batches = polars_calls.batches(self._selected(names), batch_rows)
            return _core.scan_stream(job, batches, self.token, threads, progress)

    def rounds(self, names: list[str]) -> Iterator[list[Task]]:
        """Yield rounds of a few batches each."""
        tasks: list[Task] = []
        row = 0
        for frame in polars_calls.batches(self._selected(names)):
            tasks.append(FrameTask(frame, self.token, row))
            row += frame.height
            if len(tasks) == ROUND:
                yield tasks
                tasks = []
        yield tasks

    def frames(self, names: list[str], rows: int | None = None) -> Iterator[pl.DataFrame]:
        """Yield the batches of the query."""
        with self.unchanged():
            yield from polars_calls.batches(self._selected(names), rows)

    def check_complete(self, rows: int) -> None:
        """Refuse a reading that ended before the last row.

        If a file becomes shorter after Polars has read its footer, threads of Polars panic, and its stream ends as if
        it were complete. Polars counts the rows, if that needs only footers and the columns of filters.
        """
        with polars_calls.reading(self.query), naming(self.query):
            counted = polars_calls.cheap_count(self.query)
        if counted not in (None, rows):
            why = f"{rows} rows of it could be read, and Polars counts {counted}"
            raise changed_log(file=polars_calls.query_name(self.query), why=why)

    def lazy(self) -> pl.LazyFrame:
        """Return the query itself."""
        return self.query

    @property
    def is_query(self) -> bool:
        """True, since a query has no files by which a change could be seen."""
        return True

    def in_users_terms(self, error: OffPolicyError) -> OffPolicyError:
        """Return what made a query fail: an error of this package whole, others with the names of the query's files."""
        if isinstance(error, UnreadableError):
            if (kept := kept_error(self.query, error.message)) is not None:
                return kept
            return unreadable_file(file=polars_calls.query_name(self.query), why=str(error))
        return error

    def _selected(self, names: list[str]) -> pl.LazyFrame:
        return self.query.select(polars_calls.exactly(names))


@contextmanager
def naming(query: pl.LazyFrame) -> Iterator[None]:
    """Turn the error about a missing file of a query into one that names the query's files."""
    try:
        yield
    except FileNotFoundError as error:
        raise unreadable_file(file=polars_calls.query_name(query), why=str(error).splitlines()[0]) from None
