"""Temporary folders that go when their last user goes."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path


class ScratchFolder:
    """A folder of our own, removed with this object or at exit."""

    def __init__(self) -> None:
        """Makes the folder."""
        self.path = Path(tempfile.mkdtemp(prefix="offpolicy-"))
        self.remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
