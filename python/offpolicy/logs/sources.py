"""Everything a log can be, in three forms: a frame in memory, a stream that can be read again, Parquet files."""

from __future__ import annotations

import glob
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from secrets import randbits
from typing import Any

import polars as pl

from offpolicy import _core
from offpolicy._util import polars_calls
from offpolicy._util.forked import check_not_forked
from offpolicy._util.scratch import ScratchFolder
from offpolicy.errors import BadFileError, OffPolicyError, UnreadableError
from offpolicy.errors.kinds.columns import column_twice
from offpolicy.errors.kinds.files import (
    missing_in_file,
    needs_pyarrow,
    no_file,
    no_paths,
    not_a_log,
    not_parquet,
    not_paths,
    not_regular,
    out_of_reach,
    types_of_files,
    unreadable_file,
    unreadable_frame,
)
from offpolicy.logs.reading import steady
from offpolicy.logs.tasks import FileIdentity, FrameTask, ParquetTask, Pass, Progress, Task

#: Rows a task for `map=`, at least.
TASK_ROWS = 1 << 18
#: What reads other files, by their endings.
READERS = {".csv": "pl.scan_csv", ".tsv": "pl.scan_csv", ".jsonl": "pl.scan_ndjson", ".ndjson": "pl.scan_ndjson"}
#: Frames handed to `map=` at a time, where the log is a stream.
ROUND = 16


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

    @abstractmethod
    def scan(
        self, job: Pass, names: list[str], threads: int, batch_rows: int | None, progress: Progress
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
    def name(self) -> str:
        """How the log is called, all of it."""
        return several(self.names)

    @cached_property
    def token(self) -> int:
        """A number that marks the parts of this log where it has no files to know them by."""
        return randbits(64)

    def check_unchanged(self) -> None:
        """Refuse files that are not what they were when the log was opened; other logs have none."""
        return

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Refuse files that change before or while the log is read otherwise than by `scan`, or cannot be read."""
        self.check_unchanged()
        with steady(self.check_unchanged), polars_calls.reading(self):
            yield


class FrameSource(Source):
    """A frame in memory."""

    def __init__(self, frame: pl.DataFrame) -> None:
        """Reads names and size of a copy that shares the memory: what is done to the frame does not reach it."""
        check_not_forked()
        frame = frame.clone()
        self.frame, self.columns, self.rows = frame, frame.columns, frame.height
        self.names = ["frame"]

    def scan(
        self, job: Pass, names: list[str], threads: int, batch_rows: int | None, progress: Progress
    ) -> _core.Partial:
        """Threads share the frame by ranges of rows."""
        return job.frame(self.frame.select(polars_calls.exactly(names)), self.token, 0, threads, progress)

    def rounds(self, names: list[str]) -> Iterator[list[Task]]:
        """Slices of the frame."""
        frame = self.frame.select(polars_calls.exactly(names))
        yield [FrameTask(part, self.token, start) for start, part in _slices(frame)]

    def frames(self, names: list[str], rows: int | None = None) -> Iterator[pl.DataFrame]:
        """Slices of the frame, without a copy."""
        yield from self.frame.select(polars_calls.exactly(names)).iter_slices(rows or TASK_ROWS)

    def lazy(self) -> pl.LazyFrame:
        """The frame itself."""
        return self.frame.lazy()

    def files(self) -> list[dict[str, Any]]:
        """A frame has rows and no file."""
        return [{"source": "frame", "rows": self.rows}]


def _slices(frame: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    starts = range(0, max(frame.height, 1), TASK_ROWS)
    return ((start, frame.slice(start, TASK_ROWS)) for start in starts)


class StreamSource(Source):
    """A query that gives its rows batch by batch, each time it is asked."""

    def __init__(self, name: str, query: pl.LazyFrame) -> None:
        """Finds the column names without running the query."""
        check_not_forked()
        self.query, self.names, self.rows = query, [name], None
        with polars_calls.reading(query), naming(query):
            self.columns = query.collect_schema().names()

    def scan(
        self, job: Pass, names: list[str], threads: int, batch_rows: int | None, progress: Progress
    ) -> _core.Partial:
        """Threads take turns at the stream."""
        with naming(self.query):
            batches = polars_calls.batches(self._selected(names), batch_rows)
            return job.stream(batches, self.token, threads, progress)

    def rounds(self, names: list[str]) -> Iterator[list[Task]]:
        """A few batches at a time."""
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
        """What the query gives."""
        with self.unchanged():
            yield from polars_calls.batches(self._selected(names), rows)

    def lazy(self) -> pl.LazyFrame:
        """The query itself."""
        return self.query

    def in_users_terms(self, error: OffPolicyError) -> OffPolicyError:
        """Return an error that says no more than that a query failed with the names of its files."""
        if isinstance(error, UnreadableError):
            return unreadable_file(file=polars_calls.query_name(self.query), why=str(error))
        return error

    def _selected(self, names: list[str]) -> pl.LazyFrame:
        return self.query.select(polars_calls.exactly(names))


class ReaderSource(StreamSource):
    """A maker of Arrow streams: a dataset, or a relation of a database."""

    def __init__(self, name: str, columns: list[str], open_reader: Callable[[list[str]], Any]) -> None:
        """Keeps the maker; it is called with the columns to read."""
        self.written: ParquetSource | None = None
        self.names, self.columns, self.open_reader, self.rows = [name], columns, open_reader, None

    def scan(
        self, job: Pass, names: list[str], threads: int, batch_rows: int | None, progress: Progress
    ) -> _core.Partial:
        """A new stream for each scan."""
        return job.stream(self.open_reader(names), self.token, threads, progress)

    def rounds(self, names: list[str]) -> Iterator[list[Task]]:
        """Through a temporary file, which tasks can share."""
        yield from self._spooled(names).rounds(names)

    def frames(self, names: list[str], rows: int | None = None) -> Iterator[pl.DataFrame]:
        """Through a temporary file, which Polars can read in batches."""
        yield from self._spooled(names).frames(names, rows)

    def lazy(self) -> pl.LazyFrame:
        """Through a temporary file, written once."""
        if self.written is None:
            self.written = self._spooled(self.columns)
        return self.written.lazy()

    def in_users_terms(self, error: OffPolicyError) -> OffPolicyError:
        """Return the error, which speaks of a stream."""
        return error

    def _spooled(self, names: list[str]) -> ParquetSource:
        folder = ScratchFolder()
        path = str(folder.path / "log.parquet")
        _core.spool(self.open_reader(names), names, path)
        spooled = ParquetSource([path], keep=folder)
        spooled.names = self.names
        return spooled


class ParquetSource(Source):
    """Parquet files, in any order."""

    def __init__(self, paths: Sequence[str], keep: object = None) -> None:
        """Reads the files' footers; `keep` lives as long as the source (a temporary folder)."""
        self.paths, self.names, self.keep = list(paths), list(paths), keep
        self.groups: list[list[int]] = []
        self.identities: list[FileIdentity] = []
        self.fingerprints: list[int] = []
        self.columns: list[str] = []
        self.columns_of: dict[str, list[str]] = {}
        self.sound: set[str] = set()
        for path in self.paths:
            _check_file(path)
            columns, groups, identity, fingerprint = _core.parquet_info(path)
            self.columns_of[path] = columns
            self.columns += [name for name in columns if name not in self.columns]
            self.groups.append(groups)
            self.identities.append(FileIdentity(*identity))
            self.fingerprints.append(fingerprint)
        self.rows = sum(sum(groups) for groups in self.groups)

    def scan(
        self, job: Pass, names: list[str], threads: int, batch_rows: int | None, progress: Progress
    ) -> _core.Partial:
        """Threads share the row groups."""
        self._need(names)
        files = [
            (path, index, None, identity)
            for index, (path, identity) in enumerate(zip(self.paths, self.identities, strict=True))
        ]
        found = job.parquet(files, batch_rows, threads, progress)
        self.sound.update(names)
        return found

    def rounds(self, names: list[str]) -> Iterator[list[Task]]:
        """Row groups."""
        self._need(names)
        with self.unchanged():
            yield [
                ParquetTask(path, groups, self.identities[index], (index, self.fingerprints[index], row, rows))
                for index, path in enumerate(self.paths)
                for groups, row, rows in _cut(self.groups[index])
            ]

    def frames(self, names: list[str], rows: int | None = None) -> Iterator[pl.DataFrame]:
        """Batches of one file after the other."""
        with self.unchanged():
            self.check_sound(names)
            yield from polars_calls.batches(self.lazy(names), rows)  # keeps the source, and its temporary folder

    def lazy(self, names: list[str] | None = None) -> pl.LazyFrame:
        """One file after the other, with the types that hold what all of them have."""
        chosen = self.columns if names is None else names
        self._need(chosen)
        check_not_forked()
        exact = polars_calls.exactly(chosen)
        scans = [scan.select(exact) for scan in self.pieces()]
        common = _common_types(self.paths, scans)
        return pl.concat(polars_calls.cast(scan, common) for scan in scans)

    def pieces(self) -> list[pl.LazyFrame]:
        """A query for each file."""
        check_not_forked()
        return [pl.scan_parquet(self._in_utf8(path), glob=False) for path in self.paths]

    def read(self, names: Sequence[str], rows: int) -> Iterator[pl.DataFrame]:
        """Yield what the reader of scans decodes: Polars' own may not survive a damaged file."""
        for path in self.paths:
            for unit in range(_core.parquet_units(path)):
                frame = pl.DataFrame(_core.parquet_rows(path, names, unit))
                yield from frame.iter_slices(rows)

    def _in_utf8(self, path: str) -> str:
        """Return a name that Polars takes for a file: its own, or that of a link to it where that is no UTF-8."""
        try:
            path.encode()
        except UnicodeEncodeError:
            link = self.links.path / f"{self.paths.index(path)}.parquet"
            if not link.is_symlink():
                link.symlink_to(Path(path).absolute())
            return str(link)
        return path

    @cached_property
    def links(self) -> ScratchFolder:
        """Where links to files with strange names are; it lives as long as the source."""
        return ScratchFolder()

    def check_sound(self, names: Sequence[str]) -> None:
        """Decode what no scan has read yet, with the reader of scans."""
        new = [name for name in dict.fromkeys(names) if name in self.columns and name not in self.sound]
        if new:
            _core.check_parquet(self.paths, new, os.cpu_count() or 1)
            self.sound.update(new)

    def in_users_terms(self, error: OffPolicyError) -> OffPolicyError:
        """Return the error with the name of a file in the place of its path."""
        for path, name in zip(self.paths, self.names, strict=True):
            if path != name and path in str(error):
                why = str(error).replace(path, name)
                return error.renamed(name, why) if isinstance(error, BadFileError) else type(error)(why)
        return error

    def check_unchanged(self) -> None:
        """Refuse files that are not what they were when the log was opened."""
        for path, identity in zip(self.paths, self.identities, strict=True):
            _core.check_unchanged(path, identity.described())

    def _need(self, names: list[str]) -> None:
        """A column that only some of the files have is refused, whatever their order."""
        for path, columns in self.columns_of.items():
            for name in names:
                if name not in columns:
                    owner = next(file for file, theirs in self.columns_of.items() if name in theirs)
                    raise missing_in_file(file=path, column=repr(name), owner=owner)

    def files(self) -> list[dict[str, Any]]:
        """Name, size and rows of each file."""
        return [
            {"source": path, "bytes": Path(path).stat().st_size, "rows": sum(groups)}
            for path, groups in zip(self.paths, self.groups, strict=True)
        ]


def several(names: Sequence[str]) -> str:
    """Return what a message calls several files at once, where it cannot tell which one it means.

    >>> several(["a", "b", "c"]), several(["a", "b", "c", "d", "e"])
    ('a, b, c', 'a, b and 3 more files')
    """
    names = list(dict.fromkeys(names))
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} more files"


def _check_file(path: str) -> None:
    if not Path(path).exists():
        raise no_file(file=path, what="such file")
    if not Path(path).is_file():
        raise not_regular(file=path)


@contextmanager
def naming(query: pl.LazyFrame) -> Iterator[None]:
    """Let an error that a file of a query is not there name the query's files."""
    try:
        yield
    except FileNotFoundError as error:
        raise unreadable_file(file=polars_calls.query_name(query), why=str(error).splitlines()[0]) from None


def _cut(groups: Sequence[int]) -> Iterator[tuple[list[int], int, int]]:
    """Yield neighbouring row groups that make a task, their first row and how many rows they have."""
    chosen: list[int] = []
    row = rows = 0
    for group, size in enumerate(groups):
        chosen.append(group)
        rows += size
        if rows >= TASK_ROWS or group == len(groups) - 1:
            yield chosen, row, rows
            chosen, row, rows = [], row + rows, 0


def open_log(log: Any) -> Source:
    """The source behind any kind of log."""
    if isinstance(log, Source):
        return log
    if isinstance(log, pl.DataFrame):
        return FrameSource(log)
    if isinstance(log, pl.LazyFrame):
        return StreamSource("query", log)
    if isinstance(log, str | Path):
        return _open_paths([log])
    if isinstance(log, list | tuple):
        return _open_paths(log)
    module = type(log).__module__.partition(".")[0]
    if module == "duckdb":
        return ReaderSource("relation", list(log.columns), lambda names: log.project(*map(_quoted, names)))
    if module == "pyarrow" and hasattr(log, "scanner"):
        open_dataset = lambda names: log.scanner(columns=names).to_reader()  # noqa: E731
        return ReaderSource("dataset", list(log.schema.names), open_dataset)
    if module == "pandas" or (module == "pyarrow" and not hasattr(log, "read_next_batch")):
        return FrameSource(_frame(log))
    if hasattr(log, "__arrow_c_stream__"):
        return _spool(log)
    raise not_a_log(found=type(log).__name__)


def _common_types(paths: Sequence[str], scans: Sequence[pl.LazyFrame]) -> pl.Schema:
    """A type a column that holds what every file has there, without loss."""
    first = scans[0].collect_schema()
    common = pl.Schema(first)
    for path, scan in zip(paths[1:], scans[1:], strict=True):
        for name, found in scan.collect_schema().items():
            wider = polars_calls.common_type(common[name], found)
            if wider is None:
                raise types_of_files(file=path, column=repr(name), found=found, first=first[name], other=paths[0])
            common[name] = wider
    return common


def _frame(table: Any) -> pl.DataFrame:
    try:
        if hasattr(table, "validate"):  # pyarrow's: an index or offset that leads nowhere would be followed
            table.validate(full=True)
        return pl.DataFrame(table)
    except pl.exceptions.DuplicateError as error:
        raise column_twice(what=f"a column name twice: {error}") from None
    except ImportError:
        raise needs_pyarrow() from None
    except (TypeError, ValueError) as error:  # pyarrow's, on columns of mixed objects
        raise unreadable_frame(why=error) from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _open_paths(paths: Iterable[Any]) -> Source:
    found: list[str] = []
    for item in paths:
        if not isinstance(item, str | Path):
            raise not_paths(found=type(item).__name__)
        path = str(item)
        if "://" in path:
            return _open_remote([str(item) for item in paths])
        if Path(path).is_dir():
            inside = sorted(str(file) for file in Path(path).rglob("*.parquet"))
            if not inside:
                raise no_file(file=path, what="*.parquet file in this folder")
            found += inside
        elif not Path(path).exists() and glob.has_magic(path):
            matches = sorted(glob.glob(path, recursive=True))
            if not matches:
                raise no_file(file=path, what="file matches")
            found += matches
        else:
            found.append(path)
    for path in found:
        if (reader := READERS.get(Path(path).suffix.lower())) is not None:
            raise not_parquet(file=path, reader=reader)
    if not found:
        raise no_paths()
    return ParquetSource(found)


def _open_remote(addresses: list[str]) -> Source:
    """Return files that Polars reads from elsewhere, if it can."""
    name = several(addresses)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return StreamSource(name, pl.scan_parquet(addresses))
    except (OSError, pl.exceptions.PolarsError, BadFileError) as error:
        why = str(error).partition("\n")[0]
        raise out_of_reach(file=name, why=why) from None


def _spool(reader: Any) -> Source:
    """A stream that can be read only once is written to a temporary file first."""
    folder = ScratchFolder()
    path = str(folder.path / "stream.parquet")
    _core.spool(reader, None, path)
    source = ParquetSource([path], keep=folder)
    source.names = ["stream"]
    return source
