"""Many seeded runs of an experiment on several processes, which can be resumed after an interruption.

Run i draws from its own random stream, (seed, i), so that its numbers depend neither on the number of processes nor on
the order of runs. A finished run is a line of `runs.jsonl` (`offpolicy.experiments.runs_file`). When all runs are
finished the lines are sorted, so that the file does not depend on the order either.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import numpy as np

from offpolicy.errors import UsageError
from offpolicy.errors.kinds.of_arguments import resume_or_choose
from offpolicy.errors.kinds.of_drivers import cannot_travel, process_died
from offpolicy.experiments.experiment import Experiment
from offpolicy.experiments.runs_file import FILE, Run, RunsFile

#: Environment variables that set the number of threads of libraries.
THREADS = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
#: Seconds between checks for Ctrl-C.
PATIENCE = 0.2
#: A run is given up after its process has died this many times.
TRIES = 3


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
    """Return all runs in their order; those that are already in the folder are not repeated.

    `progress` gets the number of finished runs and of all runs, at first and after each run.
    """
    about = {"experiment": experiment.name, "seed": seed, "settings": experiment.settings()}
    file = RunsFile(folder / FILE, about)
    done = _finished(file, resume)
    todo = [index for index in range(runs) if index not in done]
    file.begin()
    with file.path.open("ab") as lines:
        if progress:
            progress(sum(index < runs for index in done), runs)
        for index, result in _results(experiment, seed, todo, workers or os.cpu_count() or 1):
            done[index] = result
            lines.write(file.line(index, result))
            lines.flush()
            if progress:
                progress(sum(index < runs for index in done), runs)
    if todo:
        file.put_in_order(done)
    return [done[index] for index in range(runs)]


def already(file: Path) -> UsageError:
    """Return the error for a file that has runs when `resume` was not asked for."""
    return resume_or_choose(file=file)


def _finished(file: RunsFile, resume: bool) -> dict[int, Run]:
    if not file.path.exists():
        return {}
    if not resume:
        raise already(file.path)
    return file.read()


def _results(experiment: Experiment, seed: int, todo: list[int], workers: int) -> Iterator[tuple[int, Run]]:
    """Yield results as runs finish; the runs of a process that dies are tried again."""
    if workers == 1:
        for index in todo:
            yield index, experiment.run(_stream(seed, index))
        return
    _check_travels(experiment)
    tries: dict[int, int] = dict.fromkeys(todo, 0)
    while tries:
        with _pool(workers, experiment, seed) as pool:
            try:
                for index, result in _collect(pool, list(tries), 2 * workers):
                    del tries[index]
                    yield index, result
            except BrokenProcessPool:
                for index in list(tries)[: 2 * workers]:
                    tries[index] += 1
                    if tries[index] == TRIES:
                        raise process_died(index=index, tries=TRIES) from None


@contextmanager
def _pool(workers: int, experiment: Experiment, seed: int) -> Iterator[ProcessPoolExecutor]:
    """Start processes with one thread each; after an exception in the context they are terminated, not waited for."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ |= {name: value or "1" for name, value in before.items()}
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start, (experiment, seed))
    try:
        yield pool
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        for name, value in before.items():
            if value is None:
                del os.environ[name]


def _check_travels(experiment: Experiment) -> None:
    """Raise an error if the experiment cannot be sent to another process, before one is started."""
    try:
        ForkingPickler.dumps(experiment)
    except Exception as error:
        raise cannot_travel(name=experiment.name, error=error) from None


def _collect(pool: ProcessPoolExecutor, todo: list[int], ahead: int) -> Iterator[tuple[int, Run]]:
    waiting: set[Future[tuple[int, Run]]] = set()
    queue = iter(todo)
    while True:
        waiting |= {pool.submit(_work, index) for index in islice(queue, ahead - len(waiting))}
        if not waiting:
            return
        # Polars' signal handler does not end a wait early, so Ctrl-C is noticed only between short waits.
        finished, waiting = wait(waiting, timeout=PATIENCE, return_when=FIRST_COMPLETED)
        yield from (future.result() for future in finished)


def _stream(seed: int, index: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=(index,))


_mine: tuple[Experiment, int]


def _start(experiment: Experiment, seed: int) -> None:
    global _mine
    _mine = experiment, seed
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it
    threading.Thread(target=_end_with_the_parent, daemon=True).start()


def _end_with_the_parent() -> None:
    """End this process when its parent has ended in any way, since nobody waits for its results then."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(index: int) -> tuple[int, Run]:
    experiment, seed = _mine
    return index, experiment.run(_stream(seed, index))
