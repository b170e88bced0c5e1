"""The number of copies of an environment that fit into memory, measured by what the second and third copy take.

The first copy also pays for what all copies share, such as imported modules, so it is not measured. Two counts are
taken, and the larger one is used: that of Python and NumPy misses what a library allocates by itself, and that of the
operating system misses pages that have not been touched yet.
"""

from __future__ import annotations

import os
import tracemalloc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: The memory for all copies in bytes, and the largest number of copies.
MEMORY, MOST = 1 << 30, 256


class Pool:
    """Environments that are reused, and closed when the pool is garbage collected."""

    def __init__(self) -> None:
        """Begin without environments."""
        self.envs: list[Any] = []
        weakref.finalize(self, _close, self.envs)


def _close(envs: list[Any]) -> None:
    for env in envs:
        env.close()


def fitting(pool: Pool, make: Callable[[], Any]) -> int:
    """Return how many copies fit, a power of two, after making the first three of them.

    >>> from offpolicy.simulation.gym.footprint import fitting, Pool
    >>> class Large:
    ...     def __init__(self):
    ...         self.state = bytearray(100_000_000)
    ...     def reset(self, seed):
    ...         pass
    ...     def close(self):
    ...         pass
    >>> fitting(Pool(), Large)
    8
    """
    pool.envs.append(_started(make))
    footprint = min(_measured(lambda: pool.envs.append(_started(make))) for _ in range(2))  # other threads allocate too
    fit = max(1, min(MOST, MEMORY // max(footprint, 1)))
    return 1 << (int(fit).bit_length() - 1)


def _started(make: Callable[[], Any]) -> Any:
    env = make()
    env.reset(seed=0)
    return env


def _measured(work: Callable[[], None]) -> int:
    """Return how many more bytes are in use after the work than before."""
    ours = not tracemalloc.is_tracing()
    if ours:
        tracemalloc.start()
    resident, traced = _resident(), tracemalloc.get_traced_memory()[0]
    try:
        work()
        return max(_resident() - resident, tracemalloc.get_traced_memory()[0] - traced)
    finally:
        if ours:
            tracemalloc.stop()


def _resident() -> int:
    """Return the bytes of memory that this process holds, or 0 where the system does not report them."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0
