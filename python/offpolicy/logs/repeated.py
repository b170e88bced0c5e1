"""The ids of episodes that are in a log more than once.

The core keeps only a hash of an id that is a text. The hash finds an id that comes again, but the text of the id must
be read from the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import polars as pl

from offpolicy import _core
from offpolicy._util import polars_calls
from offpolicy.logs.sources import Source

_ROW = "__offpolicy_row__"
#: The number of a source, and of a row in it.
RowPlace: TypeAlias = tuple[int, int]


def repeated_names(found: Sequence[_core.FoundProblem], source: Source, column: str) -> dict[RowPlace, str]:
    """Return the ids of repeated episodes that the core could not name, by source and row."""
    rows: dict[int, list[int]] = {}
    for problem in found:
        if problem.kind == "reappears" and problem.episode is None and problem.source is not None:
            rows.setdefault(problem.source, []).extend([] if problem.row is None else [problem.row])
    pieces = source.pieces() if rows else []
    names: dict[RowPlace, str] = {}
    for number, here in rows.items():
        ids = pieces[number].select(polars_calls.column(column)).with_row_index(_ROW).filter(pl.col(_ROW).is_in(here))
        try:
            names |= {(number, row): name for row, name in ids.collect(engine="streaming").iter_rows()}
        except pl.exceptions.PolarsError:  # Polars may refuse a file that our reader takes
            continue
    return names
