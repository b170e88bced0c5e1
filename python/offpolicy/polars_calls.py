"""Every call of Polars that its authors mark as unstable, in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import polars as pl


def batches(frame: pl.LazyFrame, rows: int | None = None) -> Iterator[pl.DataFrame]:
    """Runs a query in streaming mode and yields its result piece by piece; the iterator is an Arrow stream too."""
    return frame.collect_batches(chunk_size=rows, maintain_order=True, lazy=True)


def add_columns(
    frame: pl.LazyFrame,
    inputs: Sequence[str],
    outputs: Sequence[str],
    function: Callable[[pl.DataFrame], pl.DataFrame],
) -> pl.LazyFrame:
    """Adds float columns that a function makes of each row by itself, batch by batch as the query runs.

    Only the inputs are read for it, so that a query for other columns reads no more than those.
    """
    made = "__offpolicy_made__"
    struct = pl.Struct(dict.fromkeys(outputs, pl.Float64))

    def apply(columns: Sequence[pl.Series]) -> pl.Series:
        return function(pl.DataFrame(list(columns))).to_struct(made)

    new = pl.map_batches([pl.col(name) for name in inputs], apply, return_dtype=struct, is_elementwise=True)
    fields = [pl.col(made).struct.field(name) for name in outputs]
    return frame.with_columns(new.alias(made)).with_columns(fields).drop(made)
