"""A grid of cells over a state space, with cell = floor(scale · x + ½) for each coordinate of a state.

    cells of a coordinate: low, low + 1, …, low + size - 1;   index: the last coordinate runs fastest

A state outside the grid is an error; it is never moved to the nearest cell.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offpolicy import _core
from offpolicy._util.scalars import shown, whole
from offpolicy.errors import OffPolicyError
from offpolicy.errors.kinds.of_arguments import bad_value
from offpolicy.errors.kinds.of_models import bad_grid, grid_too_fine, state_outside_grid
from offpolicy.logs.problem import Problem
from offpolicy.protocols import Aggregation, Floats, States

#: The largest number of cells, limited by i64, and of pairs (cell, action) of a table in the core.
MOST_CELLS, MOST_PAIRS = 2**63 - 1, 2**32 - 1
COARSER = "take fewer columns or larger cells (a smaller scale), or a fitter that needs no cells, such as 'fqe'"


class OutsideGridError(OffPolicyError):
    """The error for a state outside the grid, with its row, coordinate and value."""

    kind = state_outside_grid.id
    remedy = state_outside_grid.remedy

    def __init__(self, row: int, coordinate: int, value: object, edges: tuple[float, float]) -> None:
        """Name the row, the coordinate, its value and the edges of the grid."""
        self.row, self.coordinate, self.value = row, coordinate, value
        goes = f"from {edges[0]:g} up to {edges[1]:g}"
        super().__init__(state_outside_grid(row=row, coordinate=coordinate, value=value, goes=goes).message)

    def problem(self, episode: Any, step: int, names: Sequence[str]) -> Problem:
        """Return the error as a problem of a log in which the row has this episode and step."""
        return Problem(
            kind="outside-grid",
            file=None,
            row=None,
            episode=episode,
            step=step,
            column=names[self.coordinate],
            value=str(self.value),
            message="is in no cell of the model's grid; choose a grid that holds all states",
        )


@dataclass(frozen=True)
class Grid:
    """A regular grid; in `circular` coordinates, such as directions, the last cell is a neighbour of the first.

    >>> from offpolicy.grid import Grid
    >>> import numpy as np
    >>> grid = Grid.over([(-1.2, 0.6), (-0.07, 0.07)], scale=(64, 256))
    >>> grid.size, grid.cells
    ((116, 37), 4292)
    >>> grid.index(np.array([[-1.2, -0.07], [0.6, 0.07]]))
    array([   0, 4291])
    """

    size: tuple[int, ...]
    low: tuple[int, ...] = ()
    scale: tuple[float, ...] = ()
    circular: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        """Check the arguments and fill in defaults."""
        if isinstance(self.size, str | bytes) or not isinstance(self.size, Sequence | np.ndarray):
            raise bad_grid(fault=f"has a whole number of cells for each coordinate, not {shown(self.size)}")
        object.__setattr__(self, "size", tuple(whole("each size of a grid", n) for n in self.size))
        k = len(self.size)
        for name, default in (("low", 0), ("scale", 1.0), ("circular", False)):
            given = tuple(getattr(self, name)) or (default,) * k
            if len(given) != k:
                raise bad_grid(fault=f"of {k} coordinates needs {k} values of {name}, not {len(given)}")
            object.__setattr__(self, name, given)
        if not self.size or any(n < 1 for n in self.size):
            raise bad_grid(fault=f"needs at least one cell a coordinate, not {self.size}")
        if self.cells > MOST_CELLS:
            raise grid_too_fine(
                what=self.described, limit=f"and no more than {MOST_CELLS:.2g} can be numbered", coarser=COARSER
            )

    @classmethod
    def over(cls, ranges: Sequence[tuple[float, float]], scale: Sequence[float]) -> Grid:
        """Return the grid that contains all states in these ranges."""
        low = [math.floor(s * a + 0.5) for (a, _), s in zip(ranges, scale, strict=True)]
        high = [math.floor(s * b + 0.5) for (_, b), s in zip(ranges, scale, strict=True)]
        size = tuple(b - a + 1 for a, b in zip(low, high, strict=True))
        return cls(size, tuple(low), tuple(scale))

    @property
    def cells(self) -> int:
        """The number of cells."""
        return math.prod(self.size)

    @property
    def described(self) -> str:
        """The numbers of coordinates and cells, in words for a message."""
        shown = " × ".join(map(str, self.size[:4])) + (" × …" if len(self.size) > 4 else "")
        coordinates = "1 coordinate" if len(self.size) == 1 else f"{len(self.size)} coordinates"
        power = math.log10(self.cells)
        about = str(self.cells) if power < 7 else f"about 1e{power:.0f}"
        return f"a grid of {coordinates} with {shown} cells has {about} of them"

    def index(self, states: States) -> NDArray[np.int64]:
        """Return the cell of each state."""
        states = np.asarray(states)
        if states.ndim != 2 or states.shape[1] != len(self.size):
            raise bad_value(name="states", expected=f"an (n, {len(self.size)}) array", found=states.shape)
        return self.index_columns([states[:, i] for i in range(len(self.size))])

    def index_columns(self, columns: Sequence[NDArray[Any]], threads: int = 1) -> NDArray[np.int64]:
        """Return the cell of each state, given as one column per coordinate."""
        floats = [np.ascontiguousarray(column, dtype=np.float64) for column in columns]
        cells = np.empty(len(columns[0]), dtype=np.int64)
        try:
            _core.grid_cells(floats, self.size, self.low, self.scale, threads, cells)
        except IndexError as error:
            row, i = error.args
            low, high = ((cell - 0.5) / self.scale[i] for cell in (self.low[i], self.low[i] + self.size[i]))
            raise OutsideGridError(row, i, columns[i][row], (low, high)) from None
        return cells

    @property
    def parts_whole_numbers(self) -> bool:
        """Whether states of whole numbers never share a cell: floor(scale · x + ½) differs if scale ≥ 1."""
        return all(abs(scale) >= 1 for scale in self.scale)

    @property
    def has_unit_cells(self) -> bool:
        """Whether all cells have the width 1, so that each is assumed to have one state."""
        return all(scale == 1 for scale in self.scale)

    def centers(self, index: NDArray[np.integer]) -> Floats:
        """Return the states at the centres of cells, (n, k)."""
        cells = np.stack(np.unravel_index(index, self.size), axis=1)
        centers: Floats = (cells + np.array(self.low)) / np.array(self.scale)
        return centers


def check_table(aggregation: Aggregation, actions: int, tables: int = 1) -> None:
    """Raise an error if a table with one number per cell and action would not fit into memory.

    >>> from offpolicy.grid import Grid, check_table
    >>> check_table(Grid((10,) * 12), actions=2)
    Traceback (most recent call last):
        ...
    offpolicy.errors.UsageError: a grid of 12 coordinates with 10 × 10 × 10 × 10 × … cells has about 1e12 of them, ...
    """
    pairs = aggregation.cells * actions
    need, memory = 8 * pairs * tables, _memory()
    if pairs <= MOST_PAIRS and need <= memory:
        return
    what = aggregation.described if isinstance(aggregation, Grid) else f"there are {aggregation.cells} cells"
    have = f"this machine has {memory / 2**30:.3g}" if need > memory else f"at most {MOST_PAIRS:.2g} pairs can be held"
    raise grid_too_fine(
        what=what,
        limit=f"with {actions} actions each",
        coarser=f"a table of {need / 2**30:.3g} GiB, and {have}: {COARSER}",
    )


def _memory() -> int:
    """Return the bytes of memory of this machine, or a huge number if the system does not report them."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return sys.maxsize
