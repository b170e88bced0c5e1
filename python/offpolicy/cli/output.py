"""Text and JSON on their way out: whole or not at all, and nothing that a terminal would obey."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

import click


def one_document(document: dict[str, Any]) -> str:
    """The JSON text of a result."""
    return json.dumps(document, indent=2, allow_nan=False)


def visible(text: str) -> str:
    r"""Text with its control characters written out; names in a log may hold any.

    >>> print(visible("a\x1b[31m\nb"))
    a\x1b[31m
    b
    """
    shown = (c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
    return "".join(shown)


def check_target(given: Path) -> Path:
    """The file behind a path, through links; refuses what could not be written, before any work is done for it."""
    path = given.resolve()
    folder = path.parent
    if not folder.is_dir():
        raise click.UsageError(f"--out: there is no folder {str(folder)!r}")
    if not os.access(folder, os.W_OK):
        raise click.UsageError(f"--out: the folder {str(folder)!r} cannot be written to")
    if not path.exists():
        return path
    if not path.is_file():
        raise click.UsageError(f"--out: {str(given)!r} is not a file")
    with path.open("rb") as file:
        if file.read(4) == b"PAR1":
            raise click.UsageError(f"--out: {str(path)!r} is a Parquet file; the result would overwrite it")
    return path


def write_document(path: Path, document: dict[str, Any]) -> None:
    """Writes beside the target and renames, so that a reader sees the old file or the new one."""
    text = one_document(document)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with beside.open("x", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
