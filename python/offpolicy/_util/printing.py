"""Printing of the tables of a result."""

from __future__ import annotations

import polars as pl

from offpolicy._util.forked import check_not_forked
from offpolicy._util.visible import visible


def readable(table: pl.DataFrame) -> str:
    r"""Return a table as text in which no name contains line breaks or control characters.

    >>> r"a\nb" in readable(pl.DataFrame({"policy": ["a\nb"]}))
    True
    """
    check_not_forked()
    texts = [name for name, dtype in table.schema.items() if dtype == pl.String]
    columns = [pl.Series(name, [None if x is None else visible(x) for x in table[name]], pl.String) for name in texts]
    return str(table.with_columns(columns))


def whole_tables() -> pl.Config:
    """Return a context in which tables are printed with all rows and columns, and only very long names are cut.

    >>> import polars as pl
    >>> from offpolicy._util.printing import whole_tables
    >>> with whole_tables():
    ...     "…" in str(pl.DataFrame({"n": range(100)}))
    False
    """
    return pl.Config(tbl_cols=-1, tbl_rows=-1, tbl_width_chars=200, fmt_str_lengths=60, tbl_hide_dataframe_shape=True)
