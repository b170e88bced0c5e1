"""Parquet files, in any order."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from offpolicy import _core
from offpolicy._util import polars_calls
from offpolicy._util.forked import check_not_forked
from offpolicy._util.scratch import ScratchFolder
from offpolicy.errors import BadFileError, OffPolicyError
from offpolicy.errors.kinds.of_files import missing_in_file, no_file, not_regular, types_of_files
from offpolicy.logs import tasks
from offpolicy.logs.sources.paths import files_of
from offpolicy.logs.sources.source import Source


class ParquetSource(Source):
    """A log in Parquet files, which may be given in any order."""

    def __init__(self, paths: Sequence[str], keep: object = None) -> None:
        """Read the files' footers; `keep`, such as a temporary folder, lives as long as the source."""
        self.paths, self.names, self.keep = list(paths), list(paths), keep
        self.groups: list[list[int]] = []
        self.identities: list[tasks.FileIdentity] = []
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
            self.identities.append(tasks.FileIdentity(*identity))
            self.fingerprints.append(fingerprint)
        self.rows = sum(sum(groups) for groups in self.groups)

    @classmethod
    def of(cls, log: Any) -> Source | None:
        """Return the source of a path, a pattern or a folder, or of a list of them."""
        if isinstance(log, str | Path):
            return cls(files_of([log]))
        return cls(files_of(log)) if isinstance(log, list | tuple) else None

    def scan(
        self, job: _core.Job, names: list[str], threads: int, batch_rows: int | None, progress: tasks.Progress
    ) -> _core.Partial:
        """Scan the row groups on several threads."""
        self._need(names)
        files = [
            (path, index, None, identity.described())
            for index, (path, identity) in enumerate(zip(self.paths, self.identities, strict=True))
        ]
        found = _core.scan_parquet(job, files, batch_rows, threads, progress)
        self.sound.update(names)
        return found

    def rounds(self, names: list[str]) -> Iterator[list[tasks.Task]]:
        """Yield one round of tasks, each with neighbouring row groups of a file."""
        self._need(names)
        with self.unchanged():
            yield [
                tasks.ParquetTask(path, groups, self.identities[index], (index, self.fingerprints[index], row, rows))
                for index, path in enumerate(self.paths)
                for groups, row, rows in _cut(self.groups[index])
            ]

    def frames(self, names: list[str], rows: int | None = None) -> Iterator[pl.DataFrame]:
        """Yield batches of one file after the other."""
        with self.unchanged():
            self.check_sound(names)
            yield from polars_calls.batches(self.lazy(names), rows)  # self keeps the temporary folder

    def lazy(self, names: list[str] | None = None) -> pl.LazyFrame:
        """Return a query for one file after the other, cast to types that hold the values of all files."""
        chosen = self.columns if names is None else names
        self._need(chosen)
        check_not_forked()
        exact = polars_calls.exactly(chosen)
        scans = [scan.select(exact) for scan in self.pieces()]
        common = _common_types(self.paths, scans)
        return pl.concat(polars_calls.cast(scan, common) for scan in scans)

    def pieces(self) -> list[pl.LazyFrame]:
        """Return a query for each file."""
        check_not_forked()
        return [pl.scan_parquet(self._in_utf8(path), glob=False) for path in self.paths]

    def read(self, names: Sequence[str], rows: int) -> Iterator[pl.DataFrame]:
        """Yield frames decoded by the core's reader, since that of Polars may crash on a damaged file."""
        for path in self.paths:
            for unit in range(_core.parquet_units(path)):
                frame = pl.DataFrame(_core.parquet_rows(path, names, unit))
                yield from frame.iter_slices(rows)

    def _in_utf8(self, path: str) -> str:
        """Return a path that Polars accepts: the file's own, or that of a link to it if its own is not UTF-8."""
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
        """The folder of links to files whose names are not UTF-8; it lives as long as the source."""
        return ScratchFolder()

    def check_sound(self, names: Sequence[str]) -> None:
        """Decode the columns that no scan has read yet, with the core's reader."""
        new = [name for name in dict.fromkeys(names) if name in self.columns and name not in self.sound]
        if new:
            _core.check_parquet(self.paths, new, os.cpu_count() or 1)
            self.sound.update(new)

    @property
    def keeps_files(self) -> bool:
        """Whether the files are in a temporary folder."""
        return self.keep is not None

    def reopened(self) -> Any:
        """Return the paths, which the core's reader takes."""
        return self.paths

    def in_users_terms(self, error: OffPolicyError) -> OffPolicyError:
        """Return the error with the user's name for a file instead of a temporary path."""
        for path, name in zip(self.paths, self.names, strict=True):
            if path != name and path in str(error):
                why = str(error).replace(path, name)
                return error.renamed(name, why) if isinstance(error, BadFileError) else type(error)(why)
        return error

    def check_unchanged(self) -> None:
        """Refuse files that have changed since the log was opened."""
        for path, identity in zip(self.paths, self.identities, strict=True):
            _core.check_unchanged(path, identity.described())

    def _need(self, names: list[str]) -> None:
        """Refuse a column that only some of the files have, whatever their order."""
        for path, columns in self.columns_of.items():
            for name in names:
                if name not in columns:
                    owner = next(file for file, theirs in self.columns_of.items() if name in theirs)
                    raise missing_in_file(file=path, column=repr(name), owner=owner)

    def files(self) -> list[dict[str, Any]]:
        """Return the name, size and rows of each file."""
        return [
            {"source": path, "bytes": Path(path).stat().st_size, "rows": sum(groups)}
            for path, groups in zip(self.paths, self.groups, strict=True)
        ]


def _check_file(path: str) -> None:
    if not Path(path).exists():
        raise no_file(file=path, what="such file")
    if not Path(path).is_file():
        raise not_regular(file=path)


def _cut(groups: Sequence[int]) -> Iterator[tuple[list[int], int, int]]:
    """Yield the neighbouring row groups of each task, their first row and how many rows they have."""
    chosen: list[int] = []
    row = rows = 0
    for group, size in enumerate(groups):
        chosen.append(group)
        rows += size
        if rows >= tasks.TASK_ROWS or group == len(groups) - 1:
            yield chosen, row, rows
            chosen, row, rows = [], row + rows, 0


def _common_types(paths: Sequence[str], scans: Sequence[pl.LazyFrame]) -> pl.Schema:
    """Return one type per column that holds the values of every file without loss."""
    first = scans[0].collect_schema()
    common = pl.Schema(first)
    for path, scan in zip(paths[1:], scans[1:], strict=True):
        for name, found in scan.collect_schema().items():
            wider = polars_calls.common_type(common[name], found)
            if wider is None:
                raise types_of_files(file=path, column=repr(name), found=found, first=first[name], other=paths[0])
            common[name] = wider
    return common
