"""The parts of a log that `map=` hands to other processes.

A part goes out as a task and comes back as a state: bytes with a stamp that says for which version, plan, pass and rows
it was made (`rust/core/src/pass/stamp.rs`). A state with another stamp is refused, and so is a part that is missing or
comes twice, so that only numbers that belong together are added up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import polars as pl

from offpolicy import _core
from offpolicy.errors.kinds.of_states import map_does_not_add_up, map_gave_no_bytes, map_lost_parts

Progress: TypeAlias = Callable[[int], None] | None
#: A range of rows: index of the source, fingerprint of the file or token of the log, first row, number of rows.
Extent: TypeAlias = tuple[int, int, int, int]
#: The least number of rows of a task, unless the log or file has fewer left.
TASK_ROWS = 1 << 18


@dataclass(frozen=True)
class FileIdentity:
    """The properties by which a changed file is recognised; time and inode are valid on one machine only."""

    size: int
    modified: int | None  # nanoseconds
    inode: int | None
    footer: int  # fingerprint

    @property
    def anywhere(self) -> FileIdentity:
        """The part of the identity that a copy of the file on another machine shares."""
        return replace(self, modified=None, inode=None)

    def described(self) -> tuple[int, int | None, int | None, int]:
        """Return the identity as the tuple that the core takes."""
        return self.size, self.modified, self.inode, self.footer


@dataclass(frozen=True)
class FrameTask:
    """Consecutive rows of a log, which travel with the task."""

    frame: pl.DataFrame
    token: int
    row: int

    @property
    def extent(self) -> Extent:
        """The range of rows."""
        return 0, self.token, self.row, self.frame.height

    def run(self, job: _core.Job) -> _core.Partial:
        """Scan the rows."""
        return _core.scan_table(job, self.frame, self.token, self.row, 1, None)


@dataclass(frozen=True)
class ParquetTask:
    """Consecutive row groups of a file, which is read where the task goes."""

    path: str
    groups: list[int]
    identity: FileIdentity
    extent: Extent

    def run(self, job: _core.Job) -> _core.Partial:
        """Scan the row groups."""
        file = (self.path, self.extent[0], self.groups, self.identity.anywhere.described())
        return _core.scan_parquet(job, [file], None, 1, None)


Task: TypeAlias = FrameTask | ParquetTask


def run_task(job: _core.Job, task: Task) -> bytes:
    """Run a task in the process to which `map=` gave it, and return its state."""
    return task.run(job).encode()


def add_states(merger: _core.Merger, tasks: Sequence[Task], states: Iterable[Any], names: Sequence[str]) -> None:
    """Add up the states of tasks, in any order, and refuse parts that are missing, come twice or are of another log."""
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
