"""Passes over one log, here or through `map=`, with all that is wrong as an error and progress told."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from offpolicy import _core
from offpolicy.errors import BadLogError, ChangedLogError, UnreadableError
from offpolicy.plan import Plan
from offpolicy.problem import EMPTY
from offpolicy.reading import Reading
from offpolicy.sources import Source, StreamSource
from offpolicy.tasks import Pass, add_states, run_task

MapFunction = Callable[[Callable[[Any], bytes], Iterable[Any]], Iterable[bytes]]
ProgressFunction = Callable[[int, int | None], None]


class Scanner:
    """Reads one log as often as an evaluation needs, here or through `map=`."""

    def __init__(
        self,
        source: Source,
        threads: int,
        batch_rows: int | None,
        map_function: MapFunction | None,
        progress: ProgressFunction | None,
        plan: Plan,
        passes: int = 2,
    ) -> None:
        """Keeps the log and the ways to read it."""
        self.source, self.threads, self.batch_rows, self.map = source, threads, batch_rows, map_function
        self.progress = progress
        second = passes == 2 and any(policy.estimators for policy in plan.second().policies)
        self.total = None if source.rows is None else source.rows * (2 if second else 1)
        self.done = 0
        self.reading: Reading | None = None  # what the first pass has read

    def scan(self, plan: Plan, pass_name: str, normalisers: bytes | None) -> _core.Whole:
        """One pass; raises `BadLogError` with all that is wrong."""
        again = self.reading is not None
        whole = self.read(plan, pass_name, normalisers)
        document = json.loads(whole.problems())
        if document["found"]:
            problems = self.source.problems(document["kept"])
            if again:  # the first pass found nothing wrong
                raise ChangedLogError(self.source.name, f"it was in order, and is not when read again: {problems[0]}")
            raise BadLogError(problems, document["found"])
        if whole.episodes == 0:
            raise BadLogError([EMPTY])
        return whole

    def again(self, plan: Plan, pass_name: str, normalisers: bytes | None) -> _core.Whole:
        """One more pass after the evaluation is done, of which no progress is told."""
        self.progress = None
        return self.scan(plan, pass_name, normalisers)

    def read(self, plan: Plan, pass_name: str, normalisers: bytes | None) -> _core.Whole:
        """One pass, whatever it finds; a log that is not what an earlier pass has read is refused."""
        job, names = Pass(plan.spec(), pass_name, normalisers), plan.names()
        merger = job.merger()
        try:
            if self.map is None:
                merger.add(self.source.scan(job, names, self.threads, self.batch_rows, self._report()))
            else:
                for tasks in self.source.rounds(names):
                    add_states(merger, tasks, self.map(partial(run_task, job), tasks), self.source.names)
        except UnreadableError as error:
            if self.reading is None:
                raise
            raise ChangedLogError(self.source.name, f"it was read before, and now {error}") from None
        if self.source.rows is not None:
            self.done += self.source.rows
            if self.progress:
                self.progress(self.done, self.total)
        whole = merger.finish()
        reading = Reading.of(whole)
        if self.reading is not None:
            self.reading.check(reading, self.source.name)
        self.reading = self.reading or reading
        return whole

    def _report(self) -> Callable[[int], None] | None:
        progress, done = self.progress, self.done
        return None if progress is None else lambda rows: progress(done + rows, self.total)


class Steady:
    """A log that is read by others between two looks at it, and must not change meanwhile."""

    def __init__(self, source: Source, plan: Plan, threads: int | None) -> None:
        """Look at the log for the first time; raises `BadLogError` with all that is wrong."""
        self.scanner, self.plan = Scanner(source, threads or os.cpu_count() or 1, None, None, None, plan), plan
        self.scanner.scan(plan, "first", None)

    def check(self) -> None:
        """Refuse a log that has changed: files by what the system knows of them, a query by reading it once more."""
        source = self.scanner.source
        source.check_unchanged()
        if isinstance(source, StreamSource):
            self.scanner.scan(self.plan, "first", None)
