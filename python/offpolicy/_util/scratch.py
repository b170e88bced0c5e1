"""Temporary folders that are removed with their owner; those of killed processes are removed at the next start.

Each folder has a file `lock`, which its process keeps locked until it ends in any way. A process that can lock the file
may remove the folder. Process ids would not do, because the system reuses them. Folders of other users, links and
folders without that file are left alone.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # no file locks on this system, so nothing is swept
    fcntl = None  # type: ignore[assignment]

#: The prefixes of folders in the system's temporary folder, and of hidden folders beside a file.
PREFIX, HIDDEN = "offpolicy-", ".offpolicy-"
LOCK = "lock"

_swept: set[Path] = set()


class ScratchFolder:
    """A temporary folder that is removed with this object or at exit."""

    def __init__(self, beside: Path | None = None) -> None:
        """Make the folder, hidden beside a file or in the system's temporary folder."""
        place, prefix = (Path(tempfile.gettempdir()), PREFIX) if beside is None else (beside.parent, HIDDEN)
        if place not in _swept:
            _swept.add(place)
            sweep(place)
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
        self.remove = weakref.finalize(self, _remove, self.path, _locked(self.path), os.getpid())


def sweep(place: Path | None = None) -> list[Path]:
    """Remove the folders of processes that have ended, and return them."""
    place = place or Path(tempfile.gettempdir())
    found = []
    with suppress(OSError):
        found = [path for path in place.iterdir() if path.name.startswith((PREFIX, HIDDEN))]
    return [path for path in found if _abandoned(path)]


def _abandoned(path: Path) -> bool:
    """Remove the folder if its process has ended; return whether it was removed."""
    try:
        about = path.lstat()
        if fcntl is None or not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
            return False
        lock = os.open(path / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # its process lives
        return False
    else:
        shutil.rmtree(path, ignore_errors=True)
        return True
    finally:
        os.close(lock)


def _locked(folder: Path) -> int | None:
    """Make the lock file of a folder, which is already locked when other processes can see it."""
    if fcntl is None:
        return None
    lock = os.open(folder / f"{LOCK}.new", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    with suppress(OSError):  # without file locks the folder gets no lock file and is not swept
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (folder / f"{LOCK}.new").rename(folder / LOCK)
    return lock


def _remove(folder: Path, lock: int | None, process: int) -> None:
    if os.getpid() == process:  # a forked process does not own the folder
        shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        with suppress(OSError):
            os.close(lock)
