"""Every call of Polars that its authors mark as unstable, in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import polars as pl


def batches(frame: pl.LazyFrame, rows: int | None = None) -> Iterator[pl.DataFrame]:
    """Runs a query in streaming mode and yields its result piece by piece; the iterator is an Arrow stream too."""
    return frame.collect_batches(chunk_size=rows, maintain_order=True, lazy=True)


def common_type(one: pl.DataType, other: pl.DataType) -> pl.DataType | None:
    """The type of both together, if it loses nothing: an id is never rounded, a number never written as text."""
    if one == other:
        return one
    if not (one.is_numeric() and other.is_numeric()):
        return None
    empty = [pl.DataFrame({"x": []}, schema={"x": kind}) for kind in (one, other)]
    wider = pl.concat(empty, how="vertical_relaxed").schema["x"]
    rounds = wider.is_float() and any(kind in (pl.Int64, pl.UInt64) for kind in (one, other))
    return None if rounds or wider == pl.Int128 else wider  # i64 with u64: a width that the core does not read


def write_parquet(frame: pl.LazyFrame, path: Path, metadata: Mapping[str, str]) -> None:
    """Runs a query in streaming mode into a file, with our own entries in its metadata."""
    try:
        frame.sink_parquet(path, metadata=dict(metadata), maintain_order=True)
    except KeyboardInterrupt:
        with suppress(KeyboardInterrupt):  # Polars raises one itself, and Python's own is still to come
            repr(path)
        raise


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
