"""Handling of Ctrl-C while a command is still being imported: exit code 130 without a traceback, as later on.

The package imports this module first. Importing it installs the handler, and it imports nothing that takes time.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

COMMANDS = ("offpolicy", "offpolicy.exe", "offpolicy-script.py")


def is_command() -> bool:
    """Return whether this process is the command line, rather than a program that imports the package."""
    words = sys.orig_argv
    module = "-m" in words and words[words.index("-m") + 1 :][:1] == ["offpolicy"]
    return module or (len(words) > 1 and Path(words[1]).name in COMMANDS)


def _begin() -> None:
    """Install the handler for Ctrl-C, unless the process has another one."""
    if threading.current_thread() is not threading.main_thread() or not is_command():
        return
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def done() -> None:
    """Restore Python's handler, once the command line handles Ctrl-C itself."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(_signal: int, _frame: object) -> None:
    os.write(2, b"interrupted: nothing was written\n")
    os._exit(130)


_begin()
