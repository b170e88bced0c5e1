"""Long calls of other libraries that Ctrl-C interrupts at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

Result = TypeVar("Result")

#: Seconds between two checks for a signal.
POLL = 0.1


class Stopped(BaseException):
    """Raised in a working thread to end it when nobody waits for its result any more."""


def interruptible(work: Callable[[Callable[[], None]], Result]) -> Result:
    """Run the work on another thread, so that Ctrl-C ends the wait at once.

    The work gets a function to call from time to time, which stops it when nobody waits any more.

    >>> interruptible(lambda go_on: 1 + 1)
    2
    """
    future: Future[Result] = Future()
    left = threading.Event()

    def go_on() -> None:
        if left.is_set():
            raise Stopped

    def run() -> None:
        try:
            future.set_result(work(go_on))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        while not wait([future], timeout=POLL).done:  # Polars' signal handler would not end a longer wait
            pass
        return future.result()
    finally:
        left.set()
