"""How the tables of a result are printed."""

from __future__ import annotations

import polars as pl


def whole_tables() -> pl.Config:
    """A context in which tables have all their rows and columns, and names are cut late.

    >>> import polars as pl
    >>> from offpolicy.printing import whole_tables
    >>> with whole_tables():
    ...     "…" in str(pl.DataFrame({"n": range(100)}))
    False
    """
    return pl.Config(tbl_cols=-1, tbl_rows=-1, tbl_width_chars=200, fmt_str_lengths=60, tbl_hide_dataframe_shape=True)
