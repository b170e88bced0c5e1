"""Files that are there whole or not at all."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from offpolicy._util.scratch import ScratchFolder


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path to write to instead of `path`, which takes its place at the end; a reader sees the old file or the new.

    Its folder is temporary and lies beside `path`; what else is put there goes too. A file that is replaced leaves its
    mode to the new one.

    >>> target = Path("text.txt")
    >>> with whole_file(target) as beside:
    ...     _ = beside.write_text("all of it")
    ...     print(target.exists())
    False
    >>> target.read_text()
    'all of it'
    """
    folder = ScratchFolder(beside=path)
    try:
        beside = folder.path / path.name
        yield beside
        with beside.open("rb+") as file:
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            beside.chmod(stat.S_IMODE(path.stat().st_mode))
        beside.replace(path)
    finally:
        folder.remove()


def write_json(path: Path, document: Any, indent: int = 2) -> None:
    r"""Writes a document, whole or not at all, and none with a NaN, which is no JSON.

    >>> write_json(Path("document.json"), {"value": 0.5}, indent=1)
    >>> Path("document.json").read_text()
    '{\n "value": 0.5\n}\n'
    """
    text = json.dumps(document, indent=indent, allow_nan=False)
    with whole_file(path) as beside:
        beside.write_text(text + "\n", encoding="utf-8")
