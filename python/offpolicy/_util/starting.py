"""Ctrl-C while a command is still being imported: it ends as later on, with the exit code 130 and without a traceback.

This is the first module that the package imports; it does so by itself, and imports nothing that takes time.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

COMMANDS = ("offpolicy", "offpolicy.exe", "offpolicy-script.py")


def is_command() -> bool:
    """Tell whether this process is the command line, and no program that imports the package."""
    words = sys.orig_argv
    module = "-m" in words and words[words.index("-m") + 1 :][:1] == ["offpolicy"]
    return module or (len(words) > 1 and Path(words[1]).name in COMMANDS)


def _begin() -> None:
    """Take Ctrl-C, where nobody else does."""
    if threading.current_thread() is not threading.main_thread() or not is_command():
        return
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def done() -> None:
    """Give it back, once there is something that can end in an orderly way."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(_signal: int, _frame: object) -> None:
    os.write(2, b"interrupted: nothing was written\n")
    os._exit(130)


_begin()
