"""Cells for states of texts and categories: one per combination in the log, and one for all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offpolicy.errors.kinds.of_arguments import bad_value
from offpolicy.errors.kinds.of_columns import missing_column
from offpolicy.errors.kinds.of_models import bad_categories, category_twice
from offpolicy.logs.columns import Columns
from offpolicy.logs.sources import open_log
from offpolicy.protocols import States


@dataclass(frozen=True)
class Categories:
    """Known combinations, each a tuple with one text per state column; the last cell is for all other combinations.

    A tabular model fitted to that log has no data in the last cell, and gives it the lowest reward.

    >>> import numpy as np, offpolicy as op, polars as pl
    >>> log = pl.DataFrame({"ward": ["icu", "er", "icu"], "shift": ["night", "day", "night"]})
    >>> cells = op.Categories.of(log, ("ward", "shift"))
    >>> cells.values, cells.cells
    ((('er', 'day'), ('icu', 'night')), 3)
    >>> cells.index(np.array([["icu", "night"], ["icu", "day"]], dtype=object))
    array([1, 2])
    """

    values: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        """Raise an error for duplicate combinations, or combinations of different lengths."""
        if not self.values or len({len(value) for value in self.values}) > 1:
            raise bad_categories()
        if len(set(self.values)) < len(self.values):
            raise category_twice()

    @classmethod
    def of(cls, log: Any, columns: Sequence[str] | Columns) -> Categories:
        """Return the combinations of these columns that a log has, in order; the log is read in bounded memory."""
        source = open_log(log)
        names = list(columns.states(source.columns) if isinstance(columns, Columns) else columns)
        for name in names:
            if name not in source.columns:
                raise missing_column(name=repr(name), what="", there="")
        texts = source.lazy().select(pl.col(name).cast(pl.String) for name in names)
        found = texts.unique().drop_nulls().sort(names).collect(engine="streaming")
        return cls(tuple(found.rows()))

    @property
    def cells(self) -> int:
        """The number of cells, including the one for unknown combinations."""
        return len(self.values) + 1

    @cached_property
    def _numbers(self) -> dict[tuple[str, ...], int]:
        return {value: number for number, value in enumerate(self.values)}

    def index(self, states: States) -> NDArray[np.int64]:
        """Return the cell of each state."""
        width = len(self.values[0])
        if states.ndim != 2 or states.shape[1] != width:
            raise bad_value(name="states", expected=f"an (n, {width}) array", found=states.shape)
        other = len(self.values)
        found = (self._numbers.get(tuple(map(str, row)), other) for row in states.tolist())
        return np.fromiter(found, dtype=np.int64, count=len(states))
