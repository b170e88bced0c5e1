"""Calls of Polars functions that are marked as unstable, in one place, and the translation of Polars' errors."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
from polars import selectors
from polars.exceptions import PanicException, PolarsError

from offpolicy._util.forked import check_not_forked
from offpolicy.errors.kinds.of_files import refused_by_polars

Function = TypeVar("Function", bound=Callable[..., Any])

#: The number of characters of an error of Polars that are shown.
SHOWN = 300


@contextmanager
def reading(log: Any) -> Iterator[None]:
    """Turn an error or a panic of Polars into an error of this package that names the log.

    >>> with reading(["a.parquet"]):
    ...     _ = pl.DataFrame({"x": [1]}).select("y")
    Traceback (most recent call last):
        ...
    offpolicy.errors.BadFileError: a.parquet: Polars cannot read it: unable to find column "y"; valid columns: ["x"]
    """
    try:
        yield
    except (PolarsError, PanicException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # of the system, and not made by Polars
            raise
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        why = f"{said[:SHOWN]}…" if len(said) > SHOWN else said
        raise refused_by_polars(file=log_name(log), why=why) from error


def naming_the_log(function: Function) -> Function:
    """Let errors of Polars inside a function name the log, its first argument."""

    @wraps(function)
    def call(log: Any, *arguments: Any, **named: Any) -> Any:
        with reading(log):
            return function(log, *arguments, **named)

    return call  # type: ignore[return-value]


def log_name(log: Any) -> str:
    """Return the name of a log or its source in errors: its files, as far as they are known.

    >>> log_name(["a.parquet", Path("b.parquet")]), log_name(pl.scan_parquet("a.parquet")), log_name(pl.DataFrame())
    ('a.parquet, b.parquet', 'query of a.parquet', 'the log')
    """
    query = getattr(log, "query", log)  # the source of a lazy frame has one
    if isinstance(query, pl.LazyFrame):
        return query_name(query)
    files = [log] if isinstance(log, str | Path) else getattr(log, "names", log)
    return ", ".join(dict.fromkeys(map(str, files))) if isinstance(files, list | tuple) else "the log"


def query_name(query: pl.LazyFrame) -> str:
    """Return the name of a query in errors: its files, if it has any. They are not read, since they may be damaged."""
    files: list[str] = []

    def noted(part: dict[str, Any]) -> dict[str, Any]:
        files.extend(path["inner"] for path in part.get("Paths") or ())
        return part

    with suppress(Exception), warnings.catch_warnings():  # the name is optional
        warnings.simplefilter("ignore")
        json.loads(query.serialize(format="json"), object_hook=noted)
    return f"query of {', '.join(dict.fromkeys(files))}" if files else "query"


def exactly(names: Sequence[str]) -> list[pl.Expr]:
    """Return columns by their names, taken literally."""
    return [column(name) for name in names]


def column(name: str) -> pl.Expr:
    """Return the column of exactly this name; `pl.col` would read `*` and `^…$` as patterns.

    >>> pl.DataFrame({"x": [1], "^x$": [2]}).select(column("^x$"), pl.col("^x$")).row(0)
    (2, 1)
    """
    pattern = name == "*" or (name.startswith("^") and name.endswith("$"))
    return selectors.by_name(name).as_expr() if pattern else pl.col(name)


def cast(frame: pl.LazyFrame, types: Mapping[str, pl.DataType]) -> pl.LazyFrame:
    """Return a query with the named columns cast to other types."""
    own = frame.collect_schema()
    changed = [column(name).cast(dtype) for name, dtype in types.items() if own[name] != dtype]
    return frame.with_columns(changed) if changed else frame


def batches(frame: pl.LazyFrame, rows: int | None = None) -> Iterator[pl.DataFrame]:
    """Run a query in streaming mode and yield its result in batches; the iterator is also an Arrow stream."""
    check_not_forked()
    return frame.collect_batches(chunk_size=rows, maintain_order=True, lazy=True)


#: How lines of a plan begin that reads files, filters their rows and does nothing else.
_CHEAP = ("SELECT [len()]", "simple π", "Parquet SCAN", "PROJECT", "SELECTION:", "ESTIMATED ROWS:", "FILTER", "FROM")


def cheap_count(query: pl.LazyFrame) -> int | None:
    """Return the number of rows of a query, or None where more than filters of Parquet files would have to be run.

    >>> cheap_count(pl.LazyFrame({"x": [1, 2]})) is None
    True
    """
    count = query.select(pl.len())
    if not all(line.strip().startswith(_CHEAP) for line in count.explain().splitlines()):
        return None
    found: int = count.collect(engine="streaming").item()
    return found


def common_type(one: pl.DataType, other: pl.DataType) -> pl.DataType | None:
    """Return the common type of two columns, or None if an id would be rounded or a number written as text."""
    if one == other:
        return one
    if not (one.is_numeric() and other.is_numeric()):
        return None
    empty = [pl.DataFrame({"x": []}, schema={"x": kind}) for kind in (one, other)]
    wider = pl.concat(empty, how="vertical_relaxed").schema["x"]
    rounds = wider.is_float() and any(kind in (pl.Int64, pl.UInt64) for kind in (one, other))
    return None if rounds or wider == pl.Int128 else wider  # i64 with u64: the core does not read i128


def write_parquet(frame: pl.LazyFrame, path: Path, metadata: Mapping[str, str]) -> None:
    """Run a query in streaming mode into a file, with these entries in its metadata."""
    check_not_forked()
    try:
        frame.sink_parquet(path, metadata=dict(metadata), maintain_order=True)
    except KeyboardInterrupt:
        with suppress(KeyboardInterrupt):  # Polars raised one, and Python's own is pending
            repr(path)
        raise


def add_columns(
    frame: pl.LazyFrame,
    inputs: Sequence[str],
    outputs: Sequence[str],
    function: Callable[[pl.DataFrame], pl.DataFrame],
    made: str,
) -> pl.LazyFrame:
    """Add float columns that a function computes for each row separately, batch by batch as the query runs.

    The function reads only the inputs, so that a query for other columns reads nothing more. `made` is the name of the
    column that holds its results in between, and by which the plan of the query shows the function.
    """
    struct = pl.Struct(dict.fromkeys(outputs, pl.Float64))

    def apply(columns: Sequence[pl.Series]) -> pl.Series:
        return function(pl.DataFrame(list(columns))).to_struct(made)

    new = pl.map_batches(exactly(inputs), apply, return_dtype=struct, is_elementwise=True)
    fields = [pl.col(made).struct.field(name) for name in outputs]
    return frame.with_columns(new.alias(made)).with_columns(fields).drop(made)
