"""A tabular model, which counts transitions between cells of states.

    R̂(s, a) = mean reward,    P̂(s'|s, a) = N(s, a, s') / N(s, a)

A pair (s, a) that was never seen gets the lowest reward of the domain and leads back to its cell, so that the model is
not optimistic where the log has no data. The end of an episode is not a cell. Jiang & Li (2016) fit Mountain Car in
this way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offpolicy._util import scalars
from offpolicy.errors import BadLogError, OffPolicyError, UsageError
from offpolicy.errors.kinds.of_models import cells_not_counted, no_grid
from offpolicy.grid import Grid, OutsideGridError, check_table
from offpolicy.logs.columns import Columns
from offpolicy.logs.transitions import Transitions, transitions
from offpolicy.mdp import SparseModel, TransitionCounts, optimal_policy, values_side_by_side
from offpolicy.models.aggregation import ByFunction
from offpolicy.models.categories import Categories
from offpolicy.models.fitters.tabular_values import TabularValues
from offpolicy.models.tabulation import exact_table, looks_closer, table_at
from offpolicy.policies import TabularPolicy
from offpolicy.protocols import Aggregation, Floats, Policy, Setting, States


@dataclass(frozen=True)
class Tabular:
    """A fitter that counts in one pass over a log of any size.

    Parameters
    ----------
    aggregate
        How states become cells: a `Grid`, `Categories` if states are texts, or a function from an (n, k) array of
        states to n cell numbers. The default is the domain's `grid`.
    cells
        The number of cells of the function.
    unseen_reward
        The reward of a pair that was never seen; by default the lowest reward of the domain.
    columns
        The names of the log's columns.
    batch_rows
        The number of rows in memory at a time.

    Examples
    --------
    >>> import offpolicy as op, polars as pl
    >>> log = pl.DataFrame({"episode": [0, 0], "step": [0, 1], "state": [0, 1], "action": [1, 0], "reward": [1.0, 2.0]})
    >>> domain = op.LoggedDomain(state_columns=("state",), actions=2, horizon=3, reward_range=(0.0, 2.0))
    >>> model = op.fitter("tabular", aggregate=op.Grid((2,))).fit(log, domain)
    >>> values = model.values(op.policies.Uniform(2), horizon=3, discount=1.0)
    >>> values.v_hat(log[["state"]].to_numpy(), step=0)
    array([1.875, 1.75 ])
    """

    aggregate: Grid | Categories | Callable[[States], NDArray[np.integer]] | None = None
    cells: int | None = None
    unseen_reward: float | None = None
    columns: Columns | None = None
    batch_rows: int | None = None

    def __post_init__(self) -> None:
        """Raise an error for invalid parameters."""
        for name in ("cells", "batch_rows"):
            object.__setattr__(self, name, scalars.size(name, getattr(self, name)))
        if self.unseen_reward is not None:
            object.__setattr__(self, "unseen_reward", scalars.number("unseen_reward", self.unseen_reward))

    def fit(self, log: object, domain: Setting) -> TabularModel:
        """Count every step of the log once."""
        aggregation = self._aggregation(domain)
        check_table(aggregation, domain.actions)
        counts = TransitionCounts(aggregation.cells, domain.actions)
        seen = _Seen(aggregation)
        names = tuple((self.columns or Columns()).state or domain.state_columns)
        texts = isinstance(aggregation, Categories)
        for batch in transitions(log, domain, self.columns, self.batch_rows, texts):
            cells, following = _cells(aggregation, batch, names)
            seen.note(cells, batch)
            counts.add(cells, batch.action_column, batch.rewards, following, batch.terminal, batch.known)
        unseen = domain.reward_range[0] if self.unseen_reward is None else self.unseen_reward
        return TabularModel(counts.model(unseen), aggregation, seen.representatives(), domain, names, seen.whole)

    def missing(self, domain: Setting) -> list[str]:
        """Describe what is missing to fit a model of this domain."""
        try:
            self._aggregation(domain)
        except UsageError as error:
            return [error.message]
        return []

    def _aggregation(self, domain: Setting) -> Aggregation:
        aggregate = self.aggregate if self.aggregate is not None else getattr(domain, "grid", None)
        if aggregate is None:
            raise no_grid(
                name=repr(domain.name),
                why="",
                how="aggregate= (an op.Grid, op.Categories.of(log, ...) for texts, or a function with cells=)",
            )
        if isinstance(aggregate, Grid | Categories):
            return aggregate
        if self.cells is None:
            raise cells_not_counted()
        return ByFunction(aggregate, self.cells)


def _cells(
    aggregation: Aggregation, batch: Transitions, names: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the cells of s and s'; where s' is unknown or terminal it need not lie in a cell."""
    cells = _index(aggregation, batch, batch.state_columns, names)
    following = [f"next_{name}" for name in names]
    try:
        return cells, _index(aggregation, batch, batch.next_columns, following)
    except OffPolicyError:
        follows = batch.known & ~batch.terminal
        pairs = zip(batch.next_columns, batch.state_columns, strict=True)
        return cells, _index(aggregation, batch, [np.where(follows, after, now) for after, now in pairs], following)


def _index(
    aggregation: Aggregation, batch: Transitions, columns: Sequence[NDArray[Any]], names: Sequence[str]
) -> NDArray[np.int64]:
    if not isinstance(aggregation, Grid):
        return aggregation.index(np.stack(columns).T)
    try:
        return aggregation.index_columns(columns)
    except OutsideGridError as outside:
        row = outside.row
        raise BadLogError([outside.problem(batch.episodes[row], int(batch.steps[row]), names)]) from None


class _Seen:
    """One state per cell, at which policies are evaluated: the centre of a grid's cell, or the first in the log."""

    def __init__(self, aggregation: Aggregation) -> None:
        self.aggregation = aggregation
        self.states: States | None = None
        self.whole = True
        self.found = np.zeros(aggregation.cells, dtype=bool)

    def note(self, cells: NDArray[np.int64], batch: Transitions) -> None:
        self.whole &= all(np.issubdtype(column.dtype, np.integer) for column in batch.state_columns)
        if isinstance(self.aggregation, Grid):
            return
        states = batch.states
        if self.states is None:
            self.states = np.zeros((self.aggregation.cells, states.shape[1]), dtype=states.dtype)
        new = np.flatnonzero(~self.found[cells])
        which, first = np.unique(cells[new], return_index=True)
        self.states[which], self.found[which] = states[new[first]], True

    def representatives(self) -> tuple[NDArray[np.int64], States]:
        """Return the cells that have a representative state, and these states."""
        if isinstance(self.aggregation, Grid):
            which = np.arange(self.aggregation.cells)
            centers = self.aggregation.centers(which)
            whole = self.whole and (centers == np.rint(centers)).all()
            return which, centers.astype(np.int64) if whole else centers
        which = np.flatnonzero(self.found)
        return which, np.empty((0, 0)) if self.states is None else self.states[which]


@dataclass(frozen=True, eq=False)
class TabularModel:
    """The fitted model: `sparse` has R̂ and P̂, `aggregation` the cells; `whole` if states were stored as integers."""

    sparse: SparseModel
    aggregation: Aggregation
    representatives: tuple[NDArray[np.int64], States]
    domain: Setting
    state_columns: tuple[str, ...]
    whole: bool = False

    def values(self, policy: Policy, horizon: int, discount: float) -> TabularValues:
        """Return the finite-horizon values of a policy."""
        return self.values_of([policy], horizon, discount)[0]

    def values_of(self, policies: Sequence[Policy], horizon: int, discount: float) -> list[TabularValues]:
        """Return the values of several policies, which costs little more than one policy."""
        tables = [self._table(policy, horizon) for policy in policies]
        found = values_side_by_side(self.sparse, tables, horizon, discount)
        closer = [looks_closer(policy, self.aggregation, self.sparse.actions) for policy in policies]
        return [
            TabularValues(
                sparse=self.sparse,
                aggregation=self.aggregation,
                lanes=lanes,
                lane=lane,
                discount=discount,
                state_columns=self.state_columns,
                policy=policy if close else None,
                whole=self.whole,
            )
            for (lanes, lane), policy, close in zip(found, policies, closer, strict=True)
        ]

    def optimal_policy(self, maximize: bool = True, discount: float | None = None) -> TabularPolicy:
        """Return the best stationary policy, or the worst, among legal actions.

        With a discount of 1, a pair that was never seen would have an infinite cost. If the domain's discount is 1 and
        none is given here, the discount is therefore 1 - 1/horizon, under which episodes last for the horizon on
        average.
        """
        gamma = self.domain.discount if discount is None else discount
        if discount is None and gamma == 1:
            gamma = 1 - 1 / self.domain.horizon
        best = optimal_policy(self.sparse, gamma, maximize, self._legal()).actions
        table = np.zeros((self.sparse.states, self.sparse.actions))
        table[np.arange(len(table)), best] = 1.0
        return TabularPolicy(table, self.aggregation)

    def _table(self, policy: Policy, horizon: int) -> Floats:
        """Return π(a|cell); it is uniform in cells without a representative, where all actions are worth the same."""
        exact = exact_table(policy, self.aggregation, self.sparse.actions)
        if exact is not None:
            return exact if exact.ndim == 2 else exact[:horizon]
        which, states = self.representatives
        found = table_at(policy, states, horizon)
        table = np.full((*found.shape[:-2], self.sparse.states, self.sparse.actions), 1 / self.sparse.actions)
        table[..., which, :] = found
        return table

    def _legal(self) -> NDArray[np.bool_]:
        """Return the legal actions of each cell; all actions where none is legal, since no policy acts there."""
        which, states = self.representatives
        legal = np.ones((self.sparse.states, self.sparse.actions), dtype=bool)
        legal[which] = self.domain.legal(states)
        legal[~legal.any(axis=1)] = True
        return legal
