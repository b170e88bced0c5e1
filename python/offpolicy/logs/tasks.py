"""One pass over a log as the core takes it, and the parts of a log that `map=` hands to other processes.

A part goes out as a task and comes back as a state: bytes with a stamp that says for which version, plan, pass and rows
it was made (`rust/core/src/pass/stamp.rs`). A state of anything else is refused, and so is a part that is missing or
comes twice: numbers that belong together are added up, and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import polars as pl

from offpolicy import _core
from offpolicy.errors.kinds.states import map_does_not_add_up, map_gave_no_bytes, map_lost_parts

Progress: TypeAlias = Callable[[int], None] | None
#: Rows of a log: index of the source, fingerprint of the file or token of the log, first row, number of rows.
Extent: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True)
class FileIdentity:
    """What tells whether a file is still the one that it was; time and inode are those of one machine alone."""

    size: int
    modified: int | None  # nanoseconds
    inode: int | None
    footer: int  # fingerprint

    @property
    def anywhere(self) -> FileIdentity:
        """What a copy of the file on another machine has too."""
        return replace(self, modified=None, inode=None)

    def described(self) -> tuple[int, int | None, int | None, int]:
        """Return it as the core takes it."""
        return self.size, self.modified, self.inode, self.footer


@dataclass(frozen=True)
class Pass:
    """One scan of the log, as the core takes it."""

    spec: str
    name: str
    normalisers: bytes | None = None

    def frame(self, frame: pl.DataFrame, token: int, row: int, threads: int, progress: Progress) -> _core.Partial:
        """Scan a frame whose first row is row `row` of the log with this token."""
        return _core.scan_table(self.spec, self.name, self.normalisers, frame, token, row, threads, progress)

    def stream(self, stream: Any, token: int, threads: int, progress: Progress) -> _core.Partial:
        """Scan an Arrow stream."""
        return _core.scan_stream(self.spec, self.name, self.normalisers, stream, token, threads, progress)

    def parquet(
        self,
        files: Sequence[tuple[str, int, list[int] | None, FileIdentity]],
        batch_rows: int | None,
        threads: int,
        progress: Progress,
    ) -> _core.Partial:
        """Scan Parquet files; one that is not what it was is refused."""
        asked = [(path, index, groups, identity.described()) for path, index, groups, identity in files]
        return _core.scan_parquet(self.spec, self.name, self.normalisers, asked, batch_rows, threads, progress)

    def merger(self) -> _core.Merger:
        """Return what adds up the parts of the log."""
        return _core.Merger(self.spec, self.name, self.normalisers)


@dataclass(frozen=True)
class FrameTask:
    """Consecutive rows of a log, which travel with the task."""

    frame: pl.DataFrame
    token: int
    row: int

    @property
    def extent(self) -> Extent:
        """Which rows these are."""
        return 0, self.token, self.row, self.frame.height

    def run(self, job: Pass) -> _core.Partial:
        """Scan the rows."""
        return job.frame(self.frame, self.token, self.row, 1, None)


@dataclass(frozen=True)
class ParquetTask:
    """Consecutive row groups of a file, which is read where the task goes."""

    path: str
    groups: list[int]
    identity: FileIdentity
    extent: Extent

    def run(self, job: Pass) -> _core.Partial:
        """Scan the row groups."""
        return job.parquet([(self.path, self.extent[0], self.groups, self.identity.anywhere)], None, 1, None)


Task: TypeAlias = FrameTask | ParquetTask


def run_task(job: Pass, task: Task) -> bytes:
    """Do a task where `map=` put it; bytes go back."""
    return task.run(job).encode()


def add_states(merger: _core.Merger, tasks: Sequence[Task], states: Iterable[Any], names: Sequence[str]) -> None:
    """Add up the states of tasks, in any order; refuse parts that are missing, come twice or are of another log."""
    waiting = [task.extent for task in tasks]
    for state in states:
        if not isinstance(state, bytes):
            raise map_gave_no_bytes(found=type(state).__name__)
        for extent in merger.add_state(state):
            if extent not in waiting:
                twice = any(task.extent == extent for task in tasks)
                why = "came twice" if twice else "is not among those that were asked for"
                raise map_does_not_add_up(part=_part(extent, names), why=why)
            waiting.remove(extent)
    if waiting:
        raise map_lost_parts(count=len(tasks) - len(waiting), tasks=len(tasks), part=_part(waiting[0], names))


def _part(extent: Extent, names: Sequence[str]) -> str:
    source, _, row, rows = extent
    name = names[source] if source < len(names) else "another log"
    return f"the part of {rows} rows from row {row} on of {name}"
