"""Aggregation of states into the cells of a finite model, by a grid or by a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from offpolicy.errors.kinds.of_models import cell_outside
from offpolicy.errors.kinds.of_simulation import wrong_array
from offpolicy.protocols import States


@dataclass(frozen=True)
class ByFunction:
    """Cells given by a function of an (n, k) array of states.

    >>> import numpy as np
    >>> from offpolicy.models.aggregation import ByFunction
    >>> ByFunction(lambda states: (states[:, 0] > 0).astype(int), cells=2).index(np.array([[-3.0], [2.0]]))
    array([0, 1])
    """

    function: Callable[[States], NDArray[np.integer]]
    cells: int

    def index(self, states: States) -> NDArray[np.int64]:
        """Return the checked cell numbers of the function."""
        found = np.asarray(self.function(states))
        if found.shape != (len(states),) or not np.issubdtype(found.dtype, np.integer):
            raise wrong_array(
                who="the aggregation",
                expected=f"{len(states)} whole numbers",
                found=f"{found.dtype} of shape {found.shape}",
            )
        inside = (found >= 0) & (found < self.cells)
        if not inside.all():
            row = int(np.argmin(inside))
            raise cell_outside(
                row=row, fault=f"the cell of state {states[row]} is {found[row]}, not 0 to {self.cells - 1}"
            )
        return found.astype(np.int64)
