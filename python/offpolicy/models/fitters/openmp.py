"""OpenMP's threads for regressors: no more than the processors that are ours, and than there is work for.

A regressor of scikit-learn starts a thread for each processor and lets them spin between short loops. On a machine that
is busy, or in calls with few rows, that costs more than it gains.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from typing import Any

#: With fewer rows a thread more does not pay.
ROWS_OF_A_THREAD = 50_000


def worthwhile(rows: int) -> int:
    """Return how many threads a regression or prediction of so many rows gets.

    >>> from offpolicy.models.fitters.openmp import worthwhile
    >>> worthwhile(10_000)
    1
    """
    ours = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(ours, rows // ROWS_OF_A_THREAD))


@contextmanager
def limited(rows: int) -> Iterator[None]:
    """Limit OpenMP's threads inside, for the thread that calls; without threadpoolctl nothing is changed."""
    controller = _controller()
    if controller is None:
        yield
        return
    with controller.limit(limits=worthwhile(rows), user_api="openmp"):
        yield


@lru_cache(maxsize=1)
def _controller() -> Any:
    """Return what sets the threads of the libraries that are loaded, looked for once: that takes milliseconds."""
    try:
        return import_module("threadpoolctl").ThreadpoolController()
    except ImportError:
        return None
