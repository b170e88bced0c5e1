"""JSON and files on their way out: no file takes the place of a log."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click


def one_document(document: dict[str, Any]) -> str:
    """The JSON text of a result."""
    return json.dumps(document, indent=2, allow_nan=False)


def check_writable(given: Path, option: str = "--out") -> Path:
    """The file behind a path, through links; refuses what could not be written, before any work is done for it."""
    path = given.resolve()
    folder = path.parent
    if not folder.is_dir():
        raise click.UsageError(f"{option}: there is no folder {str(given.parent)!r}")
    if not os.access(folder, os.W_OK):
        raise click.UsageError(f"{option}: the folder {str(folder)!r} cannot be written to")
    if path.exists() and not path.is_file():
        raise click.UsageError(f"{option}: {str(given)!r} is not a file")
    return path


def check_target(given: Path) -> Path:
    """The same for a result, which is JSON and must not take the place of a log."""
    path = check_writable(given)
    if path.exists():
        with path.open("rb") as file:
            if file.read(4) == b"PAR1":
                raise click.UsageError(f"--out: {str(path)!r} is a Parquet file; the result would overwrite it")
    if given.suffix not in ("", ".json"):
        raise click.UsageError(f"--out: the result is JSON: name a file .json, not {given.suffix}")
    return path
