"""Q̂, V̂ and R̂ of a tabular model, looked up by cell, action and step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offpolicy import _core
from offpolicy.annotation.tabulation import exact_table, expected_q
from offpolicy.errors.kinds.models import cell_outside, cells_without_probabilities, transitions_not_told
from offpolicy.grid import Grid
from offpolicy.mdp import SparseModel
from offpolicy.models.aggregation import Aggregation
from offpolicy.policies import TabularPolicy
from offpolicy.protocols import Actions, Floats, Policy, States, Step, ValueModel


@dataclass(frozen=True, eq=False)
class TabularValues:
    """The values of one policy, which lie beside those of others: V̂ is `lanes[:, :, lane]`."""

    sparse: SparseModel
    aggregation: Aggregation
    lanes: Floats
    lane: int
    discount: float
    state_columns: tuple[str, ...] = ()
    policy: Policy | None = None  # asked at each state, where it tells two states of a cell apart
    whole: bool = False  # the states of the log were whole numbers
    _tables: Tables = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Puts V where the core finds it."""
        object.__setattr__(self, "_tables", Tables.of(None, self))

    @property
    def v(self) -> Floats:
        """V̂ as a (horizon, cells) array: row t has horizon - t steps to go."""
        return self.lanes[:, :, self.lane]

    @property
    def horizon(self) -> int:
        """H."""
        return len(self.lanes)

    @property
    def actions(self) -> int:
        """|A|."""
        return self.sparse.actions

    def q_hat(self, states: States, actions: Actions, step: Step) -> Floats:
        """R̂(s, a) + γ Σ P̂(s'|s, a) V̂(s')."""
        return self._column(1, self.aggregation.index(states), actions, step)

    def v_hat(self, states: States, step: Step) -> Floats:
        """V̂(s) = Σ_a π(a|s) Q̂(s, a)."""
        if self.policy is not None:
            return expected_q(self, self.policy, states, step)
        return self._column(2, self.aggregation.index(states), np.zeros(len(states), dtype=np.int64), step)

    def r_hat(self, states: States, actions: Actions) -> Floats:
        """R̂(s, a)."""
        return self._column(3, self.aggregation.index(states), actions, 0)

    def transition_probability(self, states: States, actions: Actions, next_states: States) -> Floats:
        """P̂(s'|s, a); NaN for a pair never seen. It is that of a state only where every state has its own cell."""
        if not (isinstance(self.aggregation, Grid) and self.aggregation.parts_whole_numbers):
            raise transitions_not_told(why="several states may share a cell of the tabular model, whose P̂ is of cells")
        if not self.whole:
            raise transitions_not_told(
                why="the tabular model was fitted to states that are not stored as whole numbers"
            )
        if not all(np.array_equal(given, np.rint(given)) for given in (states, next_states)):
            raise cells_without_probabilities()
        cells, following = self.aggregation.index(states), self.aggregation.index(next_states)
        return self.sparse.probabilities(cells, actions, following)

    def is_beside(self, other: ValueModel | None) -> bool:
        """True if these values are the next to another's, so that both can be looked up at once."""
        return (
            isinstance(other, TabularValues)
            and (other.lanes is self.lanes and other.lane + 1 == self.lane)
            and (other.policy is None and self.policy is None)
        )

    def _column(self, which: int, cells: NDArray[np.int64], actions: Actions, step: Step) -> Floats:
        steps = np.broadcast_to(np.asarray(step, dtype=np.int64), cells.shape)
        a, wanted = np.asarray(actions, dtype=np.int64), [i == which for i in range(4)]
        try:
            (found,) = self._tables.look_up(cells, np.ascontiguousarray(a), np.ascontiguousarray(steps), 0, wanted, 1)
        except IndexError as error:
            row = error.args[0]
            raise cell_outside(
                row=row,
                fault=f"action {a[row]} at step {steps[row]}: actions are 0 to {self.actions - 1} and steps 0 to "
                f"{self.horizon - 1}",
            ) from None
        column = found[which]
        assert column is not None
        return column


@dataclass(frozen=True, eq=False)
class Tables:
    """A policy's table, a model's values or both over the same cells, as the core looks them up."""

    aggregation: Aggregation
    shape: tuple[int, int, int]  # horizon, cells, actions
    policy: Floats | None
    values: tuple[_core.TabularModel, Floats, int, float] | None

    @classmethod
    def of(cls, policy: Policy | None, model: ValueModel | None) -> Tables | None:
        """The tables that say all of a model, a policy or both; None where neither has one."""
        if isinstance(model, TabularValues):
            shape = (model.horizon, model.sparse.states, model.sparse.actions)
            table = None if policy is None else exact_table(policy, model.aggregation, model.actions)
            if table is not None and table.ndim == 3:
                table = table[: model.horizon] if len(table) >= model.horizon else None
            values = (model.sparse.core, model.lanes, model.lane, float(model.discount))
            return cls(model.aggregation, shape, _flat(table), values)
        if isinstance(policy, TabularPolicy):
            table = policy.table
            horizon = len(table) if table.ndim == 3 else np.iinfo(np.int64).max
            return cls(policy.grid, (horizon, *table.shape[-2:]), _flat(table), None)
        return None

    def look_up(
        self,
        cells: NDArray[np.int64],
        actions: NDArray[Any],
        steps: NDArray[Any],
        first_step: int,
        wanted: Sequence[bool],
        threads: int,
        beside: int = 1,
    ) -> list[list[Floats | None]]:
        """π(a|s), Q̂, V̂ and R̂ where wanted and there; `IndexError` has the first row that is in no table.

        With `beside`, the same for so many policies whose values lie side by side, but for π and R̂.
        """
        there = (self.policy is not None, *[self.values is not None] * 3)
        p, q, v, r = (
            [np.empty(len(cells)) for _ in range(beside)] if want and has else []
            for want, has in zip(wanted, there, strict=True)
        )
        columns = (p[0] if p else None, q, v, r[0] if r else None)
        _core.tabular_lookup(cells, actions, steps, first_step, self.shape, self.policy, self.values, threads, columns)
        return [[column[i] if column else None for column in (p, q, v, r)] for i in range(beside)]


def _flat(table: Floats | None) -> Floats | None:
    return None if table is None else np.ascontiguousarray(table, dtype=np.float64).ravel()
