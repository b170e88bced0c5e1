"""A progress bar for a person at a terminal; nothing for a pipe or a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(
    hidden: bool, doing: str = "reading", unit: str = "rows"
) -> Iterator[Callable[[int, int | None], None] | None]:
    """Yield a function to call with how much is done and how much there is in all, or None without a terminal."""
    if hidden or not (sys.stdout.isatty() and sys.stderr.isatty()):
        yield None
        return
    from offpolicy.cli import show

    with show.progress_bar(doing, unit) as advance:
        yield advance
