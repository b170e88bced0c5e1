"""JSON documents and output files, with checks that no result overwrites a log."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click


def one_document(document: dict[str, Any]) -> str:
    """Return the JSON text of a result."""
    return json.dumps(document, indent=2, allow_nan=False)


def check_writable(given: Path, option: str = "--out") -> Path:
    """Return the file behind a path, with links resolved, and refuse one that cannot be written."""
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
    """Return the file for a JSON result, and refuse one that cannot be written or is a log."""
    path = check_writable(given)
    if path.exists():
        with path.open("rb") as file:
            if file.read(4) == b"PAR1":
                raise click.UsageError(f"--out: {str(path)!r} is a Parquet file; the result would overwrite it")
    if given.suffix not in ("", ".json"):
        raise click.UsageError(f"--out: the result is JSON: name a file .json, not {given.suffix}")
    return path
