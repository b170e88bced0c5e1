"""Logs read as Arrow streams: datasets, relations of a database, and streams that can be read only once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import polars as pl

from offpolicy import _core
from offpolicy._util.scratch import ScratchFolder
from offpolicy.errors import OffPolicyError
from offpolicy.logs.sources.parquet import ParquetSource
from offpolicy.logs.sources.query import StreamSource
from offpolicy.logs.sources.source import Source
from offpolicy.logs.tasks import Progress, Task


class ReaderSource(StreamSource):
    """A log that opens a new Arrow stream for each reading: a dataset, or a relation of a database."""

    def __init__(self, name: str, columns: list[str], open_reader: Callable[[list[str]], Any]) -> None:
        """Keep the function that opens a stream of the given columns."""
        self.written: ParquetSource | None = None
        self.names, self.columns, self.open_reader, self.rows = [name], columns, open_reader, None

    @classmethod
    def of(cls, log: Any) -> Source | None:
        """Return the source of a DuckDB relation or pyarrow dataset; other Arrow streams go to a temporary file."""
        module = type(log).__module__.partition(".")[0]
        if module == "duckdb":
            return cls("relation", list(log.columns), lambda names: log.project(*map(_quoted, names)))
        if module == "pyarrow" and hasattr(log, "scanner"):
            return cls("dataset", list(log.schema.names), lambda names: log.scanner(columns=names).to_reader())
        return _spool(log) if hasattr(log, "__arrow_c_stream__") else None

    def check_complete(self, rows: int) -> None:
        """Do nothing, since an Arrow stream reports an error if it breaks off."""

    def scan(
        self, job: _core.Job, names: list[str], threads: int, batch_rows: int | None, progress: Progress
    ) -> _core.Partial:
        """Scan a new stream."""
        return _core.scan_stream(job, self.open_reader(names), self.token, threads, progress)

    def rounds(self, names: list[str]) -> Iterator[list[Task]]:
        """Yield tasks on a temporary file, which they can share."""
        yield from self._spooled(names).rounds(names)

    def frames(self, names: list[str], rows: int | None = None) -> Iterator[pl.DataFrame]:
        """Yield frames of a temporary file, which Polars can read in batches."""
        yield from self._spooled(names).frames(names, rows)

    def lazy(self) -> pl.LazyFrame:
        """Return a query for a temporary file, which is written once."""
        if self.written is None:
            self.written = self._spooled(self.columns)
        return self.written.lazy()

    @property
    def keeps_files(self) -> bool:
        """True, since Polars reads a temporary file."""
        return True

    def in_users_terms(self, error: OffPolicyError) -> OffPolicyError:
        """Return the error unchanged, since it names the stream."""
        return error

    def _spooled(self, names: list[str]) -> ParquetSource:
        folder = ScratchFolder()
        path = str(folder.path / "log.parquet")
        _core.spool(self.open_reader(names), names, path)
        spooled = ParquetSource([path], keep=folder)
        spooled.names = self.names
        return spooled


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _spool(reader: Any) -> Source:
    """Write a stream that can be read only once to a temporary file, and return that as the source."""
    folder = ScratchFolder()
    path = str(folder.path / "stream.parquet")
    _core.spool(reader, None, path)
    source = ParquetSource([path], keep=folder)
    source.names = ["stream"]
    return source
