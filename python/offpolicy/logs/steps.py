"""The rule for whether the steps of a log count from 0 or from 1: from 0 if its smallest step is 0, otherwise from 1.

All episodes of a log count alike. The first row of a log may lie inside an episode, so that it decides only if its step
is 0. `rust/core/src/log/steps.rs` has the same rule for the scan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from offpolicy._util import polars_calls


def counted_from(smallest: int | None) -> int:
    """Return the number of an episode's first step, given the smallest step of the log, or None for a log without any.

    >>> counted_from(0), counted_from(1), counted_from(None)
    (0, 1, 0)
    """
    return 1 if smallest is not None and smallest > 0 else 0


def smallest_step(steps: Iterable[pl.Series]) -> int | None:
    """Return the smallest step, or None if there is none; nothing is read after the first 0.

    >>> smallest_step([pl.Series([3, 4]), pl.Series([0, 1])]), smallest_step([pl.Series([2, None])])
    (0, 2)
    """
    found: int | None = None
    for each in steps:
        smallest: Any = each.min() if each.dtype.is_integer() else None
        if smallest is not None and (found is None or smallest < found):
            found = int(smallest)
            if found <= 0:
                break
    return found


def steps_of(query: pl.LazyFrame, column: str) -> Iterator[pl.Series]:
    """Yield the step of a query's first row, which nearly always decides, and then all steps in batches."""
    steps = query.select(polars_calls.column(column))
    yield steps.head(1).collect().to_series()
    yield from (batch.to_series() for batch in polars_calls.batches(steps))
