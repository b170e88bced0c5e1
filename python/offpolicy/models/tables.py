"""Tables over cells, actions and steps, which the core looks up for all rows of a log at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offpolicy import _core
from offpolicy.errors import OffPolicyError
from offpolicy.logs.columns import ANNOTATED
from offpolicy.protocols import Floats, LoggedRows


class OutsideTablesError(OffPolicyError):
    """The error for a row with an action or a step (from 0) outside the tables."""

    def __init__(self, row: int, action: int, step: int, actions: int, horizon: int) -> None:
        """Name the row and the range of the tables."""
        self.actions, self.horizon = actions, horizon
        super().__init__(
            f"row {row}: action {action} at step {step}: actions are 0 to {actions - 1} and steps 0 to {horizon - 1}"
        )


@dataclass(frozen=True, eq=False)
class Tables:
    """A policy's table, a model's values, or both, over the same cells."""

    shape: tuple[int, int, int]  # horizon, cells, actions
    policy: Floats | None
    values: tuple[_core.TabularModel, Floats, int, float] | None

    def look_up(
        self, cells: NDArray[np.int64], rows: LoggedRows, wanted: Sequence[bool], beside: int = 1
    ) -> list[dict[str, Floats]]:
        """Return π(a|s), Q̂, V̂ and R̂ by role, as far as they are wanted and available.

        With `beside`, return Q̂ and V̂ of so many policies whose values are stored side by side.
        """
        there = (self.policy is not None, *[self.values is not None] * 3)
        p, q, v, r = (
            [np.empty(len(cells)) for _ in range(beside)] if want and has else []
            for want, has in zip(wanted, there, strict=True)
        )
        columns = (p[0] if p else None, q, v, r[0] if r else None)
        actions, steps = rows.action_column, rows.step_column
        try:
            _core.tabular_lookup(
                cells, actions, steps, rows.first_step, self.shape, self.policy, self.values, rows.threads, columns
            )
        except IndexError as error:
            row, (horizon, _, action_count) = int(error.args[0]), self.shape
            step = int(steps[row]) - rows.first_step
            raise OutsideTablesError(row, int(actions[row]), step, action_count, horizon) from None
        made = dict(zip(ANNOTATED, (p, q, v, r), strict=True))
        return [{role: column[i] for role, column in made.items() if column} for i in range(beside)]


def flat(table: Any) -> Floats:
    """Return a table as the flat array that the core takes."""
    return np.ascontiguousarray(table, dtype=np.float64).ravel()
