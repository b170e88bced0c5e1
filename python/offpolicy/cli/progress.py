"""A progress bar for a person at a terminal; nothing for a pipe or a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def rows_read(hidden: bool) -> Iterator[Callable[[int, int | None], None] | None]:
    """Called with the rows read and those to read."""
    if hidden or not (sys.stdout.isatty() and sys.stderr.isatty()):
        yield None
        return
    from offpolicy.cli import show

    with show.progress_bar() as advance:
        yield advance
