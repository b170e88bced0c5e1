"""Long calls of other libraries that Ctrl-C must not wait for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

Result = TypeVar("Result")

#: Seconds between two looks for a signal.
POLL = 0.1


class Stopped(BaseException):
    """Ends the work of a thread that nobody waits for any more."""


def interruptible(work: Callable[[Callable[[], None]], Result]) -> Result:
    """Does the work on a thread of its own, so that Ctrl-C ends the wait at once.

    The work is given a function to call now and then, which stops it once nobody waits.

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
        while not wait([future], timeout=POLL).done:  # a wait without end is not woken once Polars handles signals too
            pass
        return future.result()
    finally:
        left.set()
