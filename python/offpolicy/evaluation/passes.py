"""Passes over one log, in this process or through `map=`, with progress reports and errors for bad logs."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from offpolicy import _core
from offpolicy.errors import BadLogError, OffPolicyError, UnreadableError
from offpolicy.errors.kinds.of_files import changed_log
from offpolicy.evaluation.memory import memory_limit
from offpolicy.evaluation.options import MapFunction, ProgressFunction
from offpolicy.evaluation.plan import Plan
from offpolicy.logs.crossing import Crossing
from offpolicy.logs.findings import Findings
from offpolicy.logs.reading import Reading
from offpolicy.logs.sources import Source
from offpolicy.logs.tasks import add_states, run_task


class Scanner:
    """A reader of one log, which makes as many passes as an evaluation needs, in this process or through `map=`."""

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
        """Keep the log and the settings for reading it."""
        self.source, self.threads, self.batch_rows, self.map = source, threads, batch_rows, map_function
        self.progress = progress
        second = passes == 2 and any(policy.estimators for policy in plan.second().policies)
        self.readings, self.done, self.told = (2 if second else 1), 0, 0
        self.crossing = Crossing()
        self.reading: Reading | None = None  # what the first pass read, to compare later passes with

    def scan(self, plan: Plan, pass_: _core.Pass, normalisers: _core.Normalisers | None = None) -> _core.Whole:
        """Make one pass, and raise `BadLogError` with everything that is wrong with the log."""
        again = self.reading is not None
        whole = self.read(plan, pass_, normalisers)
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

    def again(self, plan: Plan, pass_: _core.Pass, normalisers: _core.Normalisers | None = None) -> _core.Whole:
        """Make one more pass after the evaluation is done, without reporting progress."""
        self.progress = None
        return self.scan(plan, pass_, normalisers)

    def read(self, plan: Plan, pass_: _core.Pass, normalisers: _core.Normalisers | None = None) -> _core.Whole:
        """Make one pass whatever it finds, and repeat it if it finds that episodes cross files.

        A log that has changed since an earlier pass is refused.
        """
        try:
            while True:
                spec = replace(plan, crossing=self.crossing).spec()
                job = _core.Job(spec, pass_, normalisers)
                merger = _core.Merger(job)
                if self.map is None:
                    merger.add(self.source.scan(job, spec.names, self.threads, self.batch_rows, self._report()))
                else:
                    for tasks in self.source.rounds(spec.names):
                        add_states(merger, tasks, self.map(partial(run_task, job), tasks), self.source.names)
                if self.source.rows is not None:
                    self.done += self.source.rows
                    self._tell(0)
                whole = merger.finish()
                found = whole.crossing() if len(self.source.names) > 1 else None
                if found is None:
                    break
                self.crossing = Crossing(tuple(found[0]), found[1])
                self.readings += 1
        except OffPolicyError as error:
            if isinstance(error, UnreadableError) and self.reading is not None:
                error = changed_log(file=self.source.name, why=f"it was read before, and now {error}")
            raise self.source.in_users_terms(error) from None
        reading = Reading.of(whole)
        if self.reading is not None:
            self.reading.check(reading, self.source.name)
        else:
            self.source.check_complete(reading.rows)
        self.reading = self.reading or reading
        return whole

    def _report(self) -> Callable[[int], None] | None:
        return None if self.progress is None else self._tell

    def _tell(self, rows: int) -> None:
        """Report how many rows are done over all readings; each row counts once, and the number never falls."""
        if self.progress is not None:
            total = self.source.rows
            done = self.done + rows if total is None else min(total, (self.done + rows) // self.readings)
            self.told = max(self.told, done)
            self.progress(self.told, total)


class Steady:
    """A log that other code reads between two checks, and that must not change meanwhile."""

    def __init__(self, source: Source, plan: Plan, threads: int | None) -> None:
        """Read the log for the first time, and raise `BadLogError` with everything that is wrong with it."""
        self.scanner, self.plan = Scanner(source, threads or os.cpu_count() or 1, None, None, None, plan), plan
        self.scanner.scan(plan, _core.Pass.FIRST)

    def check(self) -> None:
        """Refuse a log that has changed, which files show by their metadata and a query only by reading it again."""
        source = self.scanner.source
        source.check_unchanged()
        if source.is_query:
            self.scanner.scan(self.plan, _core.Pass.FIRST)
