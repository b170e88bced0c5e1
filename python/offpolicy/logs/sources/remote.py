"""Parquet files in remote storage, which Polars reads."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import polars as pl

from offpolicy.errors import BadFileError
from offpolicy.errors.kinds.of_files import out_of_reach
from offpolicy.logs.sources.query import StreamSource
from offpolicy.logs.sources.source import Source, several


class RemoteSource(StreamSource):
    """A log at addresses such as `s3://bucket/log.parquet`."""

    @classmethod
    def of(cls, log: Any) -> Source | None:
        """Return a source that reads through Polars, or None if none of the paths is an address."""
        items = log if isinstance(log, list | tuple) else [log]
        if not all(isinstance(item, str | Path) for item in items):
            return None
        addresses = [str(item) for item in items]
        return cls._open(addresses) if any("://" in address for address in addresses) else None

    @classmethod
    def _open(cls, addresses: list[str]) -> Source:
        name = several(addresses)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return cls(name, pl.scan_parquet(addresses))
        except (OSError, pl.exceptions.PolarsError, BadFileError) as error:
            why = str(error).partition("\n")[0]
            raise out_of_reach(file=name, why=why) from None
