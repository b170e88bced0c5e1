"""A progress bar for a person at a terminal; nothing for a pipe or a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(
    hidden: bool, doing: str = "reading", unit: str = "rows"
) -> Iterator[Callable[[int, int | None], None] | None]:
    """What to call with how much is done, and of how much; None where nobody looks."""
    if hidden or not (sys.stdout.isatty() and sys.stderr.isatty()):
        yield None
        return
    from offpolicy.cli import show

    with show.progress_bar(doing, unit) as advance:
        yield advance
