"""Protection against work in a process that was forked after Polars had started its threads.

A fork copies only one thread. Polars would wait for its other threads for ever.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from offpolicy.errors.kinds.of_arguments import forked

#: The folder in which Linux lists the names of this process's threads; other systems have none.
TASKS = Path("/proc/self/task")
#: The name of the first thread of Polars' pool.
POOL = "polars-0"

_asked = False  # whether this process, or one from which it was forked, has called Polars
_lost = False


def check_not_forked() -> None:
    """Raise an error before a call of Polars that would never return.

    >>> check_not_forked()
    """
    global _asked
    if _lost:
        raise forked()
    _asked = True


def _after_fork() -> None:
    global _lost
    _lost = _lost or _asked or _started


def _before_fork() -> None:
    global _started
    _started = _asked or POOL in _threads()


def _threads() -> set[str]:
    names = set()
    with suppress(OSError):
        for task in TASKS.iterdir():
            with suppress(OSError):  # a thread that has ended
                names.add((task / "comm").read_text().strip())
    return names


_started = False
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
