"""Temporary folders that go when their last user goes."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path


class ScratchFolder:
    """A folder of our own, removed with this object or at exit."""

    def __init__(self, beside: Path | None = None) -> None:
        """Makes the folder, hidden beside a file or in the system's place for temporary ones."""
        if beside is None:
            made = tempfile.mkdtemp(prefix="offpolicy-")
        else:
            made = tempfile.mkdtemp(prefix=f".{beside.name}.", suffix=".tmp", dir=beside.parent)
        self.path = Path(made)
        self.remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
