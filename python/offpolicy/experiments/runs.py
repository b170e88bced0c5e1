"""Many seeded runs of an experiment, on several processes; an interrupted one goes on where it stopped.

Run i draws from a random stream of its own, (seed, i), so that neither the number of processes nor their order changes
its numbers. A finished run is a line of `runs.jsonl`; a line that was cut off by the end of a process is left out.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from offpolicy.errors import OffPolicyError, UsageError

#: How often a run is tried again when its process dies.
TRIES = 3

Run = dict[str, Any]


class Experiment(Protocol):
    """What is run many times."""

    @property
    def name(self) -> str:
        """The word after `offpolicy reproduce`."""
        ...

    def settings(self) -> dict[str, Any]:
        """All that the numbers depend on but the seed, ready for JSON."""
        ...

    def run(self, seed: np.random.SeedSequence) -> Run:
        """One run, as numbers and lists ready for JSON."""
        ...


def complete(
    experiment: Experiment,
    runs: int,
    *,
    seed: int,
    folder: Path,
    workers: int | None = None,
    resume: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> list[Run]:
    """All runs in their order; those that are in the folder already are not done again."""
    header = {"experiment": experiment.name, "seed": seed, "settings": experiment.settings()}
    file = folder / "runs.jsonl"
    done = _finished(file, header, resume)
    todo = [index for index in range(runs) if index not in done]
    with file.open("a", encoding="utf-8") as lines:
        if not done and not file.stat().st_size:
            _append(lines, header)
        for index, result in _results(experiment, seed, todo, workers or os.cpu_count() or 1):
            done[index] = result
            _append(lines, {"run": index, **result})
            if progress:
                progress(len(done), runs)
    return [done[index] for index in range(runs)]


def _append(lines: Any, document: dict[str, Any]) -> None:
    lines.write(json.dumps(document, allow_nan=False) + "\n")
    lines.flush()


def _finished(file: Path, header: dict[str, Any], resume: bool) -> dict[int, Run]:
    if not file.exists():
        return {}
    if not resume:
        raise UsageError(f"{file} has runs already: go on with resume=True, or choose another folder")
    text = file.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    first, *rest = whole.splitlines() or [""]
    if whole and json.loads(first) != json.loads(json.dumps(header)):
        raise OffPolicyError(f"{file} has runs of other settings; choose another folder")
    if whole != text:
        file.write_text(whole, encoding="utf-8")
    runs = map(json.loads, rest)
    return {run.pop("run"): run for run in runs}


def _results(experiment: Experiment, seed: int, todo: list[int], workers: int) -> Iterator[tuple[int, Run]]:
    """Results as they come; a process that dies takes no result with it."""
    if workers == 1:
        for index in todo:
            yield index, experiment.run(_stream(seed, index))
        return
    tries: dict[int, int] = dict.fromkeys(todo, 0)
    while tries:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, context, _start, (experiment, seed)) as pool:
            try:
                for index, result in _collect(pool, list(tries), 2 * workers):
                    del tries[index]
                    yield index, result
            except BrokenProcessPool:
                for index in list(tries)[: 2 * workers]:
                    tries[index] += 1
                    if tries[index] == TRIES:
                        raise OffPolicyError(f"run {index}: its process died {TRIES} times") from None
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _collect(pool: ProcessPoolExecutor, todo: list[int], ahead: int) -> Iterator[tuple[int, Run]]:
    waiting: set[Future[tuple[int, Run]]] = set()
    queue = iter(todo)
    while True:
        waiting |= {pool.submit(_work, index) for index in islice(queue, ahead - len(waiting))}
        if not waiting:
            return
        finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        yield from (future.result() for future in finished)


def _stream(seed: int, index: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=(index,))


_mine: tuple[Experiment, int]


def _start(experiment: Experiment, seed: int) -> None:
    global _mine
    _mine = experiment, seed
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides


def _work(index: int) -> tuple[int, Run]:
    experiment, seed = _mine
    return index, experiment.run(_stream(seed, index))
