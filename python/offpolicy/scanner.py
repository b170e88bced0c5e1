"""Passes over one log, here or through `map=`, with all that is wrong as an error and progress told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from offpolicy import _core
from offpolicy.errors import BadLogError, MemoryLimitError, OffPolicyError
from offpolicy.plan import Plan
from offpolicy.problem import EMPTY
from offpolicy.repeated import name_repeated
from offpolicy.sources import Pass, Source, run_task

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

    def scan(self, plan: Plan, pass_name: str, normalisers: bytes | None) -> _core.Whole:
        """One pass; raises `BadLogError` with all that is wrong."""
        whole = self.read(plan, pass_name, normalisers)
        document = json.loads(whole.problems())
        if document["found"]:
            kept = name_repeated(document["kept"], self.source, plan.columns.episode)
            raise BadLogError(self.source.problems(kept), document["found"])
        if too_large := whole.too_large(1 if self.map else self.threads):
            steps, needed = too_large
            raise MemoryLimitError(needed, plan.memory or 0, steps, whole.episodes)
        if whole.episodes == 0:
            raise BadLogError([EMPTY])
        return whole

    def again(self, plan: Plan, pass_name: str, normalisers: bytes | None) -> _core.Whole:
        """One more pass after the evaluation is done, of which no progress is told."""
        self.progress = None
        return self.scan(plan, pass_name, normalisers)

    def read(self, plan: Plan, pass_name: str, normalisers: bytes | None) -> _core.Whole:
        """One pass, whatever it finds."""
        job, names = Pass(plan.spec(), pass_name, normalisers), plan.names()
        if self.map is None:
            partials = [self.source.scan(job, names, self.threads, self.batch_rows, self._report())]
        else:
            partials = []
            for tasks in self.source.rounds(names):
                results = list(self.map(partial(run_task, job), tasks))
                if len(results) != len(tasks):
                    raise OffPolicyError(f"map= gave {len(results)} results for {len(tasks)} parts of the log")
                partials += [_core.Partial.decode(result) for result in results]
        if self.source.rows is not None:
            self.done += self.source.rows
            if self.progress:
                self.progress(self.done, self.total)
        return _core.finish(job.spec, pass_name, normalisers, partials)

    def _report(self) -> Callable[[int], None] | None:
        progress, done = self.progress, self.done
        return None if progress is None else lambda rows: progress(done + rows, self.total)
