"""The kinds of logs, one file for each. A new kind is a subclass of `Source` and an entry of `KINDS`."""

from __future__ import annotations

from typing import Any

from offpolicy.errors.kinds.of_files import not_a_log
from offpolicy.logs.sources.frame import FrameSource
from offpolicy.logs.sources.parquet import ParquetSource
from offpolicy.logs.sources.query import StreamSource
from offpolicy.logs.sources.reader import ReaderSource
from offpolicy.logs.sources.remote import RemoteSource
from offpolicy.logs.sources.source import Source, several

__all__ = [
    "KINDS",
    "FrameSource",
    "ParquetSource",
    "ReaderSource",
    "RemoteSource",
    "Source",
    "StreamSource",
    "open_log",
    "several",
]

#: The kinds of logs, in the order in which they are tried.
KINDS: tuple[type[Source], ...] = (FrameSource, StreamSource, RemoteSource, ParquetSource, ReaderSource)


def open_log(log: Any) -> Source:
    """Return the source behind any kind of log."""
    if isinstance(log, Source):
        return log
    for kind in KINDS:
        if (source := kind.of(log)) is not None:
            return source
    raise not_a_log(found=type(log).__name__)
