"""Passes over one log, here or through `map=`, with all that is wrong as an error and progress told."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from offpolicy import _core
from offpolicy.errors import BadLogError, OffPolicyError, UnreadableError
from offpolicy.errors.kinds.files import changed_log
from offpolicy.evaluation.memory import memory_limit
from offpolicy.evaluation.plan import Plan
from offpolicy.logs.crossing import Crossing
from offpolicy.logs.findings import Findings
from offpolicy.logs.reading import Reading
from offpolicy.logs.sources import Source, StreamSource
from offpolicy.logs.tasks import Pass, add_states, run_task

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
        self.readings, self.done, self.told = (2 if second else 1), 0, 0
        self.crossing = Crossing()
        self.reading: Reading | None = None  # what the first pass has read

    def scan(self, plan: Plan, pass_name: str, normalisers: bytes | None) -> _core.Whole:
        """One pass; raises `BadLogError` with all that is wrong."""
        again = self.reading is not None
        whole = self.read(plan, pass_name, normalisers)
        findings = Findings.of(whole, self.source, plan)
        if findings.found and again:  # the first pass found nothing wrong
            problem = findings.problems[0]
            raise changed_log(file=self.source.name, why=f"it was in order, and is not when read again: {problem}")
        if findings.found:
            raise BadLogError(findings.problems, findings.found, findings.kinds)
        if too_large := whole.too_large(1 if self.map else self.threads):
            steps, needed = too_large
            raise memory_limit(needed, plan.memory or 0, steps, whole.episodes)
        return whole

    def again(self, plan: Plan, pass_name: str, normalisers: bytes | None) -> _core.Whole:
        """One more pass after the evaluation is done, of which no progress is told."""
        self.progress = None
        return self.scan(plan, pass_name, normalisers)

    def read(self, plan: Plan, pass_name: str, normalisers: bytes | None) -> _core.Whole:
        """One pass, whatever it finds; one more where episodes are found to cross files.

        A log that is not what an earlier pass has read is refused.
        """
        try:
            whole = self._read_once(plan, pass_name, normalisers)
            while len(self.source.names) > 1 and (found := whole.crossing()) is not None:
                self.crossing = Crossing.from_core(found)
                self.readings += 1
                whole = self._read_once(plan, pass_name, normalisers)
        except OffPolicyError as error:
            raise self.source.in_users_terms(error) from None
        reading = Reading.of(whole)
        if self.reading is not None:
            self.reading.check(reading, self.source.name)
        self.reading = self.reading or reading
        return whole

    def _read_once(self, plan: Plan, pass_name: str, normalisers: bytes | None) -> _core.Whole:
        plan = replace(plan, crossing=self.crossing)
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
            raise changed_log(file=self.source.name, why=f"it was read before, and now {error}") from None
        if self.source.rows is not None:
            self.done += self.source.rows
            self._tell(0)
        return merger.finish()

    def _report(self) -> Callable[[int], None] | None:
        return None if self.progress is None else self._tell

    def _tell(self, rows: int) -> None:
        """Tell how much of the log is done, all readings together: a row counts once, and the number never falls."""
        if self.progress is not None:
            total = self.source.rows
            done = self.done + rows if total is None else min(total, (self.done + rows) // self.readings)
            self.told = max(self.told, done)
            self.progress(self.told, total)


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
