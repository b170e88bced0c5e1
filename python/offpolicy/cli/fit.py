"""Tables that fit a terminal: names are folded first, then columns are left out; numbers are never cut or folded."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Column, Table

#: The width at which a table is measured so that nothing is folded.
UNFOLDED = 10_000
#: The width below which names are not folded further.
SHORTEST_NAME = 8


def width_of(out: Console, table: Table) -> int:
    """Return the width of a table in which only columns with a maximal width are folded."""
    return out.measure(table, options=out.options.update(width=UNFOLDED)).maximum


def fit(out: Console, table: Table, spare: Sequence[str]) -> list[str]:
    """Make a table as narrow as the console, if possible, and return the columns of `spare` that were left out."""
    for column in table.columns:
        excess = width_of(out, table) - out.width
        if excess > 0 and column.overflow == "fold" and not column.no_wrap:
            column.max_width = max(SHORTEST_NAME, _width(out, column) - excess)
    left_out = []
    for head in spare:
        if width_of(out, table) <= out.width:
            break
        table.columns = [column for column in table.columns if column.header != head]
        for index, column in enumerate(table.columns):
            column._index = index
        left_out.append(head)
    return left_out


def _width(out: Console, column: Column) -> int:
    """Return the width of the widest cell of a column, at most the maximal width of the column."""
    widest = max((out.measure(cell).maximum for cell in (column.header, *column.cells)), default=0)
    return min(widest, column.max_width or UNFOLDED)
