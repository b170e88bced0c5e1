"""Every call of Polars that its authors mark as unstable, in one place."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl


def batches(frame: pl.LazyFrame, rows: int | None = None) -> Iterator[pl.DataFrame]:
    """Runs a query in streaming mode and yields its result piece by piece; the iterator is an Arrow stream too."""
    return frame.collect_batches(chunk_size=rows, maintain_order=True, lazy=True)
