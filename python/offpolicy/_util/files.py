"""Files that are written completely or not at all."""

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
    """Yield a path to write to, which replaces `path` at the end, so that a reader sees the old file or the new one.

    The yielded path is in a temporary folder beside `path`, which is removed with all its other files. A new file takes
    over the mode of the file that it replaces.

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
    r"""Write a document completely or not at all; raise an error for NaN, which JSON does not have.

    >>> write_json(Path("document.json"), {"value": 0.5}, indent=1)
    >>> Path("document.json").read_text()
    '{\n "value": 0.5\n}\n'
    """
    text = json.dumps(document, indent=indent, allow_nan=False)
    with whole_file(path) as beside:
        beside.write_text(text + "\n", encoding="utf-8")
