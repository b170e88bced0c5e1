"""A limit for OpenMP's threads in regressors, by the available processors and the amount of work.

A regressor of scikit-learn starts one thread per processor, and the threads spin between short loops. On a busy
machine, or in calls with few rows, this costs more than it gains.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from typing import Any

#: The number of rows from which one more thread is worthwhile.
ROWS_OF_A_THREAD = 50_000


def worthwhile(rows: int) -> int:
    """Return the number of threads for a regression or prediction of so many rows.

    >>> from offpolicy.models.fitters.openmp import worthwhile
    >>> worthwhile(10_000)
    1
    """
    ours = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(ours, rows // ROWS_OF_A_THREAD))


@contextmanager
def limited(rows: int) -> Iterator[None]:
    """Limit OpenMP's threads for calls of this thread inside the context, if threadpoolctl is installed."""
    controller = _controller()
    if controller is None:
        yield
        return
    with controller.limit(limits=worthwhile(rows), user_api="openmp"):
        yield


@lru_cache(maxsize=1)
def _controller() -> Any:
    """Return the controller of the loaded libraries' threads; it is cached, since finding them takes milliseconds."""
    try:
        return import_module("threadpoolctl").ThreadpoolController()
    except ImportError:
        return None
