"""Paths, patterns and folders of Parquet files."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from offpolicy.errors.kinds.of_files import no_file, no_paths, not_parquet, not_paths

#: The Polars functions that read other files, by suffix.
READERS = {".csv": "pl.scan_csv", ".tsv": "pl.scan_csv", ".jsonl": "pl.scan_ndjson", ".ndjson": "pl.scan_ndjson"}


def files_of(paths: Iterable[Any]) -> list[str]:
    """Return the files of paths, patterns and folders."""
    found: list[str] = []
    for item in paths:
        if not isinstance(item, str | Path):
            raise not_paths(found=type(item).__name__)
        path = str(item)
        if Path(path).is_dir():
            inside = sorted(str(file) for file in Path(path).rglob("*.parquet"))
            if not inside:
                raise no_file(file=path, what="*.parquet file in this folder")
            found += inside
        elif not Path(path).exists() and glob.has_magic(path):
            matches = sorted(glob.glob(path, recursive=True))
            if not matches:
                raise no_file(file=path, what="file matches")
            found += matches
        else:
            found.append(path)
    for path in found:
        if (reader := READERS.get(Path(path).suffix.lower())) is not None:
            raise not_parquet(file=path, reader=reader)
    if not found:
        raise no_paths()
    return found
