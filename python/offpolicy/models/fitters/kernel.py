"""Kernel-based reinforcement learning, Ormoneit & Sen (2002), on discrete coordinates.

    R̂(s,a), P̂(s'|s,a): averages of the sampled rewards and next states, over the samples (s_i, a_i) that differ by at
    most 1 in each coordinate, with weights exp(-‖(s,a) - (s_i,a_i)‖ / bandwidth)

States are cells of a grid, so sums over samples are sums over counts. A pair without a sample nearby has the reward
`unseen_reward` and leads back to its own state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offpolicy import _core
from offpolicy._util import scalars
from offpolicy.errors.kinds.of_arguments import bad_value, outside_range
from offpolicy.errors.kinds.of_models import no_grid, unknown_layout, values_do_not_settle, wrong_number_of_actions
from offpolicy.grid import Grid
from offpolicy.logs.transitions import transitions
from offpolicy.models.beside import questions_together
from offpolicy.models.tabulation import expected_q, looks_closer, table_at
from offpolicy.policies import TabularPolicy
from offpolicy.protocols import (
    Actions,
    Floats,
    LoggedRows,
    Policy,
    Question,
    Setting,
    States,
    Step,
    ValueModel,
)

#: The geometry of a coordinate: on a line, on a circle whose ends are neighbours, or without any neighbours.
AXES = ("line", "circle", "apart")
#: Value iteration stops when no value changes by more than this fraction of the largest value.
TOLERANCE = 1e-10


@dataclass(frozen=True)
class Kernel:
    """A fitter of kernel-based models; distances are counted in cells.

    `actions` is the geometry of the actions: a "line", a "circle", or "apart", so that nothing is learned from one
    action about another. The default is the domain's `action_axis`, or "apart" if it has none. `grid` and
    `unseen_reward` are by default the domain's `grid` and its lowest reward.

    >>> import offpolicy as op, polars as pl
    >>> from offpolicy.models.fitters.kernel import Kernel
    >>> log = pl.DataFrame({"episode": [0, 1], "step": [0, 0], "state": [0, 2], "action": [0, 0], "reward": [1.0, 3.0]})
    >>> setting = op.LoggedDomain(state_columns=("state",), actions=1, horizon=2, reward_range=(0.0, 3.0))
    >>> model = Kernel(grid=op.Grid((4,))).fit(log, setting)
    >>> model.r_hat.ravel().tolist()  # by neighbours: 0; 0 and 2; 2; 2
    [1.0, 2.0, 3.0, 3.0]
    """

    bandwidth: float = 0.25
    grid: Grid | None = None
    unseen_reward: float | None = None
    actions: str | None = None

    def __post_init__(self) -> None:
        """Raise an error for a bandwidth that is not positive, and for a reward that is no number."""
        object.__setattr__(self, "bandwidth", scalars.above_0("bandwidth", self.bandwidth))
        if self.unseen_reward is not None:
            object.__setattr__(self, "unseen_reward", scalars.number("unseen_reward", self.unseen_reward))

    def fit(self, log: Any, domain: Setting) -> KernelModel:
        """Count the log's transitions in one pass."""
        grid = self.grid or getattr(domain, "grid", None)
        if grid is None:
            raise no_grid(name=repr(domain.name), why="", how="one, Kernel(grid=op.Grid(...))")
        kind = self.actions or getattr(domain, "action_axis", "apart")
        if kind not in AXES:
            raise unknown_layout(known=", ".join(AXES), found=repr(kind))
        unseen = domain.reward_range[0] if self.unseen_reward is None else self.unseen_reward
        if not np.isfinite(unseen):
            raise bad_value(name="the reward of unseen pairs", expected="finite", found=f"{unseen}: give unseen_reward")
        axes = [(n, "circle" if wraps else "line") for n, wraps in zip(grid.size, grid.circular, strict=True)]
        counts = _Counts.of(log, domain, grid)
        seen = (counts.count, counts.reward, counts.known, *counts.successors())
        core = _core.KernelModel([*axes, (domain.actions, kind)], self.bandwidth, *seen, unseen)
        return KernelModel(core, grid, domain)


class KernelModel:
    """The fitted model; `r_hat` is its R̂, (cells, actions)."""

    def __init__(self, core: _core.KernelModel, grid: Grid, domain: Setting) -> None:
        """Wrap the model that the Rust core fitted."""
        self.grid, self._core, self._domain = grid, core, domain
        self.r_hat: Floats = core.reward().reshape(grid.cells, domain.actions)
        self._states = grid.centers(np.arange(grid.cells))

    def values(self, policy: Policy, horizon: int, discount: float) -> KernelValues:
        """Return the finite-horizon values of a policy."""
        return self.values_of([policy], horizon, discount)[0]

    def values_of(self, policies: Sequence[Policy], horizon: int, discount: float) -> list[KernelValues]:
        """Return the values of several policies, computed together, which costs less than one after the other."""
        horizon, discount = scalars.horizon(horizon), scalars.discount(discount)
        flat = [table_at(policy, self._states, horizon).ravel() for policy in policies]
        if any(len(table) not in (self.r_hat.size, self.r_hat.size * horizon) for table in flat):
            raise wrong_number_of_actions(actions=self._domain.actions)
        together = _Together(self._core, flat, horizon, discount)
        closer = [looks_closer(policy, self.grid, self._domain.actions) for policy in policies]
        return [
            KernelValues(self, together, lane, policy if close else None)
            for lane, (policy, close) in enumerate(zip(policies, closer, strict=True))
        ]

    def optimal_policy(self, maximize: bool = True) -> TabularPolicy:
        """Return the best stationary policy, or the worst, by value iteration with the domain's discount.

        Only legal actions are considered, and the first of equally good actions is taken.
        """
        legal, discount = self._domain.legal(self._states), self._domain.discount
        best = self._core.optimal_actions(legal.ravel(), discount, maximize, TOLERANCE)
        if best is None:
            raise values_do_not_settle(discount=discount)
        return TabularPolicy(np.eye(self._domain.actions)[best], self.grid)


@dataclass
class _Together:
    """Policies whose values are computed in one pass on first use, together with Q̂ at the rows of that use."""

    core: _core.KernelModel
    policies: list[Floats]
    horizon: int
    discount: float
    _found: list[Floats] | None = None

    @property
    def tables(self) -> list[Floats]:
        """V̂ of each policy by remaining steps and cell, (horizon + 1, cells)."""
        if self._found is None:
            none = np.zeros(0, dtype=np.uint32)
            self._pass(none, none)
        assert self._found is not None
        return self._found

    def q_hat(self, pairs: NDArray[np.uint32], remaining: NDArray[np.uint32], lanes: Sequence[int]) -> list[Floats]:
        """Return Q̂ at rows for the policies of these lanes; later calls compute it again.

        The table of Q̂ is `actions` times as large as that of V̂, so it is not kept.
        """
        if self._found is None and len(lanes) == len(self.policies):
            return self._pass(pairs, remaining)
        tables = self.tables
        return [self.core.action_values(tables[lane].ravel(), self.discount, pairs, remaining) for lane in lanes]

    def _pass(self, pairs: NDArray[np.uint32], remaining: NDArray[np.uint32]) -> list[Floats]:
        found = self.core.values(self.policies, self.horizon, self.discount, pairs, remaining)
        self._found = [v.reshape(self.horizon + 1, -1) for v, _ in found]
        return [q for _, q in found]


@dataclass(frozen=True, eq=False)
class KernelValues:
    """The values of one policy; `lane` is its position among the policies that were computed together."""

    model: KernelModel
    together: _Together
    lane: int
    policy: Policy | None = None  # set if it may differ between states of a cell

    @property
    def table(self) -> Floats:
        """V̂ by remaining steps and cell, (horizon + 1, cells)."""
        return self.together.tables[self.lane]

    def q_hat(self, states: States, actions: Actions, step: Step) -> Floats:
        """Return Q̂(s, a)."""
        pairs, remaining = self._pairs(states, actions), self._remaining(step, len(states))
        return self.together.q_hat(pairs, remaining.astype(np.uint32), [self.lane])[0]

    def v_hat(self, states: States, step: Step) -> Floats:
        """Return V̂(s) = Σ_a π(a|s) Q̂(s, a)."""
        if self.policy is not None:
            return expected_q(self, self.policy, states, step)
        found: Floats = self.table[self._remaining(step, len(states)), self.model.grid.index(states)]
        return found

    def r_hat(self, states: States, actions: Actions) -> Floats:
        """Return R̂(s, a)."""
        found: Floats = self.model.r_hat.ravel()[self._pairs(states, actions)]
        return found

    def is_beside(self, other: ValueModel | None) -> bool:
        """Return whether these values directly follow another policy's, so that both can be looked up at once."""
        return (
            isinstance(other, KernelValues)
            and (other.together is self.together and other.lane + 1 == self.lane)
            and (other.policy is None and self.policy is None)
        )

    def lookup_many(self, questions: Sequence[Question], rows: LoggedRows) -> list[dict[str, Floats]]:
        """Return Q̂ and V̂ of several policies from one smoothing, or nothing for a single policy.

        `annotate` then asks for the single policy in smaller batches.
        """
        together = questions_together(questions)
        if together == 1:
            return [{}]
        pairs, remaining = self._pairs(rows.states, rows.actions), self._remaining(rows.steps, len(rows.steps))
        lanes = range(self.lane, self.lane + together)
        q = self.together.q_hat(pairs, remaining.astype(np.uint32), lanes)
        places = remaining * self.model.grid.cells + pairs // self.model.r_hat.shape[1]
        v = [self.together.tables[lane].ravel()[places] for lane in lanes]
        return [{"q_hat": ours, "v_hat": theirs} for ours, theirs in zip(q, v, strict=True)]

    def _pairs(self, states: States, actions: Actions) -> NDArray[np.uint32]:
        n = self.model.r_hat.shape[1]
        actions = np.asarray(actions)
        if len(actions) and (actions.min() < 0 or actions.max() >= n):
            raise outside_range(name="actions", low="0", high=n - 1, lowest=actions.min(), highest=actions.max())
        pairs: NDArray[np.uint32] = (self.model.grid.index(states) * n + actions).astype(np.uint32)
        return pairs

    def _remaining(self, step: Step, n: int) -> NDArray[np.int64]:
        horizon = self.together.horizon
        steps = np.broadcast_to(np.asarray(step, dtype=np.int64), n)
        if n and (steps.min() < 0 or steps.max() > horizon):
            raise outside_range(
                name="steps", low="0", high=f"the horizon of {horizon}", lowest=steps.min(), highest=steps.max()
            )
        return horizon - steps


@dataclass
class _Counts:
    """Sums over the samples of each pair (s, a), and the count of each following s'."""

    cells: int
    count: Floats
    reward: Floats
    known: Floats
    followed: NDArray[np.int64]  # pair · cells + s', ascending
    times: NDArray[np.int64]

    @classmethod
    def of(cls, log: Any, domain: Setting, grid: Grid) -> _Counts:
        """Count the transitions of a log batch by batch."""
        size = grid.cells * domain.actions
        counts = cls(grid.cells, *np.zeros((3, size)), *np.zeros((2, 0), dtype=np.int64))
        for batch in transitions(log, domain):
            pair = grid.index(batch.states) * domain.actions + batch.actions
            counts.count += np.bincount(pair, minlength=size)
            counts.reward += np.bincount(pair, weights=batch.rewards, minlength=size)
            counts.known += np.bincount(pair[batch.known], minlength=size)
            on = batch.known & ~batch.terminal
            counts._follow(pair[on] * grid.cells + grid.index(batch.next_states[on]))
        return counts

    def _follow(self, keys: NDArray[np.int64]) -> None:
        new, times = np.unique(keys, return_counts=True)
        if len(self.followed):
            both, place = np.unique(np.concatenate([self.followed, new]), return_inverse=True)
            new, times = both, np.bincount(place, weights=np.concatenate([self.times, times])).astype(np.int64)
        self.followed, self.times = new, times

    def successors(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32], Floats]:
        """Return (pair, s', times) in ascending order."""
        pair, following = np.divmod(self.followed, self.cells)
        return pair.astype(np.uint32), following.astype(np.uint32), self.times.astype(np.float64)
