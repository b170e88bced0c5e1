"""Frames in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from offpolicy import _core
from offpolicy._util import polars_calls
from offpolicy._util.forked import check_not_forked
from offpolicy.errors.kinds.of_columns import column_twice
from offpolicy.errors.kinds.of_files import needs_pyarrow, unreadable_frame
from offpolicy.logs import tasks
from offpolicy.logs.sources.source import Source


class FrameSource(Source):
    """A frame in memory."""

    def __init__(self, frame: pl.DataFrame) -> None:
        """Keep a clone that shares the memory, so that later changes to the user's frame do not reach it."""
        check_not_forked()
        frame = frame.clone()
        self.frame, self.columns, self.rows = frame, frame.columns, frame.height
        self.names = ["frame"]

    @classmethod
    def of(cls, log: Any) -> Source | None:
        """Return the source of a Polars or pandas frame or a pyarrow table; pyarrow's streams are of other kinds."""
        if isinstance(log, pl.DataFrame):
            return cls(log)
        module = type(log).__module__.partition(".")[0]
        streamed = hasattr(log, "scanner") or hasattr(log, "read_next_batch")
        return cls(_frame(log)) if module == "pandas" or (module == "pyarrow" and not streamed) else None

    def scan(
        self, job: _core.Job, names: list[str], threads: int, batch_rows: int | None, progress: tasks.Progress
    ) -> _core.Partial:
        """Scan ranges of rows on several threads."""
        frame = self.frame.select(polars_calls.exactly(names))
        return _core.scan_table(job, frame, self.token, 0, threads, progress)

    def rounds(self, names: list[str]) -> Iterator[list[tasks.Task]]:
        """Yield one round of tasks, each with a slice of the frame."""
        frame = self.frame.select(polars_calls.exactly(names))
        yield [tasks.FrameTask(part, self.token, start) for start, part in _slices(frame)]

    def frames(self, names: list[str], rows: int | None = None) -> Iterator[pl.DataFrame]:
        """Yield slices of the frame, without a copy."""
        yield from self.frame.select(polars_calls.exactly(names)).iter_slices(rows or tasks.TASK_ROWS)

    def lazy(self) -> pl.LazyFrame:
        """Return a query for the frame."""
        return self.frame.lazy()

    def files(self) -> list[dict[str, Any]]:
        """Return the number of rows; a frame has no file."""
        return [{"source": "frame", "rows": self.rows}]

    @property
    def in_memory(self) -> pl.DataFrame | None:
        """The frame itself."""
        return self.frame

    def reopened(self) -> Any:
        """Return the frame itself."""
        return self.frame


def _slices(frame: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    starts = range(0, max(frame.height, 1), tasks.TASK_ROWS)
    return ((start, frame.slice(start, tasks.TASK_ROWS)) for start in starts)


def _frame(table: Any) -> pl.DataFrame:
    try:
        if hasattr(table, "validate"):  # a pyarrow table may have indices or offsets out of bounds
            table.validate(full=True)
        return pl.DataFrame(table)
    except pl.exceptions.DuplicateError as error:
        raise column_twice(what=f"a column name twice: {error}") from None
    except ImportError:
        raise needs_pyarrow() from None
    except (TypeError, ValueError) as error:  # pyarrow raises these for columns of mixed objects
        raise unreadable_frame(why=error) from None
