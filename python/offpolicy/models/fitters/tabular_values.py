"""Q̂, V̂ and R̂ of a tabular model, looked up by cell, action and step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from offpolicy._util.probabilities import count
from offpolicy.errors.kinds.of_models import cells_without_probabilities, transitions_not_told
from offpolicy.logs.columns import ANNOTATED
from offpolicy.mdp import SparseModel
from offpolicy.models.beside import questions_together
from offpolicy.models.tables import Tables, flat
from offpolicy.models.tabulation import expected_q, tabulated
from offpolicy.protocols import (
    Actions,
    Aggregation,
    Floats,
    LoggedRows,
    Policy,
    PolicyTable,
    Question,
    States,
    Step,
    ValueModel,
)


@dataclass(frozen=True, eq=False)
class TabularValues:
    """The values of one policy, stored side by side with those of others: V̂ is `lanes[:, :, lane]`."""

    sparse: SparseModel
    aggregation: Aggregation
    lanes: Floats
    lane: int
    discount: float
    state_columns: tuple[str, ...] = ()
    policy: Policy | None = None  # set if it may differ between states of a cell
    whole: bool = False  # the states of the log were whole numbers
    _target: list[_Target] = field(default_factory=list, repr=False)  # the policy that was looked up last

    @property
    def v(self) -> Floats:
        """V̂ as a (horizon, cells) array, in which row t has horizon - t remaining steps."""
        return self.lanes[:, :, self.lane]

    @property
    def horizon(self) -> int:
        """The horizon H."""
        return len(self.lanes)

    @property
    def actions(self) -> int:
        """The number of actions."""
        return self.sparse.actions

    def q_hat(self, states: States, actions: Actions, step: Step) -> Floats:
        """Return R̂(s, a) + γ Σ P̂(s'|s, a) V̂(s')."""
        return self._column("q_hat", self.aggregation.index(states), actions, step)

    def v_hat(self, states: States, step: Step) -> Floats:
        """Return V̂(s) = Σ_a π(a|s) Q̂(s, a)."""
        if self.policy is not None:
            return expected_q(self, self.policy, states, step)
        return self._column("v_hat", self.aggregation.index(states), np.zeros(len(states), dtype=np.int64), step)

    def r_hat(self, states: States, actions: Actions) -> Floats:
        """Return R̂(s, a)."""
        return self._column("r_hat", self.aggregation.index(states), actions, 0)

    def transition_probability(self, states: States, actions: Actions, next_states: States) -> Floats:
        """Return P̂(s'|s, a), or NaN for a pair that was never seen; raise an error if states may share a cell."""
        if not getattr(self.aggregation, "parts_whole_numbers", False):
            raise transitions_not_told(why="several states may share a cell of the tabular model, whose P̂ is of cells")
        if not self.whole:
            raise transitions_not_told(
                why="the tabular model was fitted to states that are not stored as whole numbers"
            )
        if not all(np.array_equal(given, np.rint(given)) for given in (states, next_states)):
            raise cells_without_probabilities()
        cells, following = self.aggregation.index(states), self.aggregation.index(next_states)
        return self.sparse.probabilities(cells, actions, following)

    def lookup_many(self, questions: Sequence[Question], rows: LoggedRows) -> list[dict[str, Floats]]:
        """Look up all columns that the tables have, in one pass of the core over the rows."""
        count_together = questions_together(questions)
        policy, roles = questions[0].policy, questions[0].roles
        target = None if policy is None or "target_prob" not in roles else self._tabulated(policy)
        tables = self._tables(None if target is None else flat(target.probabilities))
        closer = {"v_hat"} if self.policy is not None else set()
        cells = rows.cells(self.aggregation)
        found = tables.look_up(cells, rows, [role in roles - closer for role in ANNOTATED], count_together)
        if target is not None and target.uneven.any():
            count(target.uneven[cells if target.uneven.ndim == 1 else (rows.steps, cells)])
        return found

    def is_beside(self, other: ValueModel | None) -> bool:
        """Return whether these values directly follow another policy's, so that both can be looked up at once."""
        return (
            isinstance(other, TabularValues)
            and (other.lanes is self.lanes and other.lane + 1 == self.lane)
            and (other.policy is None and self.policy is None)
        )

    def _tables(self, policy: Floats | None) -> Tables:
        shape = (self.horizon, self.sparse.states, self.sparse.actions)
        return Tables(shape, policy, (self.sparse.core, self.lanes, self.lane, float(self.discount)))

    def _tabulated(self, policy: Policy) -> PolicyTable | None:
        """Return π(a|cell) for the steps of these values; the last table is cached, since many batches ask for it."""
        if not self._target or self._target[0].policy is not policy:
            found = tabulated(policy, self.aggregation, self.actions)
            if found is not None and found.probabilities.ndim == 3:
                enough = len(found.probabilities) >= self.horizon
                found = PolicyTable(found.probabilities[: self.horizon], found.uneven) if enough else None
            self._target[:] = [_Target(policy, found)]
        return self._target[0].table

    def _column(self, role: str, cells: NDArray[np.int64], actions: Actions, step: Step) -> Floats:
        steps = np.broadcast_to(np.asarray(step, dtype=np.int64), cells.shape)
        a = np.ascontiguousarray(np.asarray(actions, dtype=np.int64))
        rows = LoggedRows((), a, np.ascontiguousarray(steps))
        (found,) = self._tables(None).look_up(cells, rows, [role == each for each in ANNOTATED])
        return found[role]


@dataclass(frozen=True, eq=False)
class _Target:
    """A policy and its table over these cells, or None if it has no such table."""

    policy: Policy
    table: PolicyTable | None
