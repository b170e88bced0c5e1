"""Building blocks for tabular models: counts of transitions, and dynamic programming on these.

    R̂(s, a) = mean reward,    P̂(s'|s, a) = N(s, a, s') / N(s, a)
    Q^h(s, a) = R̂(s, a) + γ Σ P̂(s'|s, a) V^{h-1}(s'),    V^h(s) = Σ_a π(a|s) Q^h(s, a),    V^0 = 0

States and actions are whole numbers from 0. An episode that ends goes to a state of value 0, which is not stored. The
probabilities of a pair's successors therefore add to 1 less the probability of the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from offpolicy import _core
from offpolicy._util import scalars
from offpolicy.errors.kinds.of_arguments import bad_value, outside_range
from offpolicy.errors.kinds.of_models import cell_outside, core_refused, does_not_fit
from offpolicy.errors.kinds.of_states import damaged_sketch
from offpolicy.protocols import Floats

#: The number of policies that the core evaluates at once.
LANES = 4


class TransitionCounts:
    """Counts of a log's transitions; counts of its parts can be merged in any order, with the same bits.

    >>> from offpolicy.mdp import TransitionCounts
    >>> counts = TransitionCounts(states=2, actions=2)
    >>> counts.add(states=[0, 0], actions=[1, 1], rewards=[1.0, 4.0], next_states=[0, 1], terminal=[False, True])
    >>> counts.visits
    array([[0, 2],
           [0, 0]], dtype=uint64)
    >>> model = counts.model(unseen_reward=-1.0)
    >>> model.rewards
    array([[-1. ,  2.5],
           [-1. , -1. ]])
    """

    def __init__(self, states: int, actions: int) -> None:
        """Begin without transitions."""
        states, actions = scalars.whole("states", states), scalars.whole("actions", actions)
        self.states, self.actions = states, actions
        try:
            self._core = _core.Transitions(states, actions)
        except (ValueError, OverflowError) as error:
            raise core_refused(error=str(error)) from None

    def add(
        self,
        states: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        next_states: ArrayLike,
        terminal: ArrayLike | None = None,
        known: ArrayLike | None = None,
    ) -> None:
        """Count steps (s, a, r, s').

        `terminal` marks rows with which the episode ends, and `known` rows whose s' is known or with which the episode
        ends. In other rows s' is ignored, and only the reward counts.
        """
        s = _integers(states, "states")
        try:
            self._core.add(
                s,
                _integers(actions, "actions", np.int32),
                _floats(rewards, "rewards"),
                _integers(next_states, "next_states"),
                np.zeros(len(s), dtype=bool) if terminal is None else _flags(terminal),
                np.ones(len(s), dtype=bool) if known is None else _flags(known),
            )
        except IndexError as error:
            row, what, value = error.args
            size = self.actions if what == "action" else self.states
            expected = "finite" if what == "reward" else f"from 0 to {size - 1}"
            raise cell_outside(row=row, fault=f"the {what} is {value:g}, must be {expected}") from None
        except ValueError as error:
            raise core_refused(error=str(error)) from None

    def merge(self, other: TransitionCounts) -> None:
        """Add the counts of another part of the log."""
        try:
            self._core.merge(other._core if other is not self else TransitionCounts.from_bytes(self.to_bytes())._core)
        except ValueError as error:
            raise core_refused(error=str(error)) from None

    @property
    def visits(self) -> NDArray[np.uint64]:
        """The counts N(s, a)."""
        return self._core.visits()

    def model(self, unseen_reward: float) -> SparseModel:
        """Return frequencies and mean rewards; an unseen pair has `unseen_reward` and leads back to its state."""
        return SparseModel(self._core.model(float(scalars.number("unseen_reward", unseen_reward))))

    def to_bytes(self) -> bytes:
        """Return the counts as bytes with a version and a checksum."""
        return self._core.encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> TransitionCounts:
        """Read the counts that `to_bytes` wrote.

        >>> from offpolicy.mdp import TransitionCounts
        >>> TransitionCounts.from_bytes(TransitionCounts(3, 2).to_bytes()).states
        3
        """
        try:
            core = _core.Transitions.decode(content)
        except ValueError as error:
            raise damaged_sketch(what=str(error)) from None
        counts = cls.__new__(cls)
        counts._core = core
        counts.states, counts.actions = core.visits().shape
        return counts


class SparseModel:
    """A model R̂(s, a) and P̂(s'|s, a) with a sparse row of successors for each pair."""

    def __init__(self, core: _core.TabularModel) -> None:
        """Wrap a model of the core; use `from_dense` or `TransitionCounts.model` to make one."""
        self.core = core

    @classmethod
    def from_dense(cls, rewards: ArrayLike, transitions: ArrayLike) -> SparseModel:
        """Make a model from an (S, A) array of rewards and an (S, A, S) array of probabilities.

        >>> import numpy as np
        >>> from offpolicy.mdp import SparseModel
        >>> SparseModel.from_dense(np.ones((2, 1)), np.zeros((2, 1, 2))).states
        2
        """
        r, p = np.asarray(rewards, dtype=float), np.asarray(transitions, dtype=float)
        if r.ndim != 2 or p.shape != (*r.shape, r.shape[0]):
            raise does_not_fit(rewards=r.shape, transitions=p.shape)
        rows = p.reshape(-1, len(r))
        pair, successor = map(np.ascontiguousarray, np.nonzero(rows))
        start = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(np.bincount(pair, minlength=len(rows)), out=start[1:])
        try:
            core = _core.TabularModel(len(r), r.shape[1], r.ravel(), start, successor, rows[pair, successor])
        except ValueError as error:
            raise core_refused(error=str(error)) from None
        return cls(core)

    @property
    def states(self) -> int:
        """The number of states."""
        return self.core.states

    @property
    def actions(self) -> int:
        """The number of actions."""
        return self.core.actions

    @property
    def rewards(self) -> Floats:
        """R̂ as an (S, A) array."""
        return self.core.rewards()

    def successors(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Return P̂ as `(start, next, probability)`; pair i = s·A + a has the entries start[i] to start[i + 1] - 1."""
        return self.core.successors()

    def probabilities(self, states: ArrayLike, actions: ArrayLike, next_states: ArrayLike) -> Floats:
        """Return P̂(s'|s, a), n values; NaN for a pair that only leads back to its state, as an unseen pair does.

        >>> from offpolicy.mdp import SparseModel
        >>> model = SparseModel.from_dense(rewards=[[0.0], [0.0]], transitions=[[[0.25, 0.5]], [[0.0, 1.0]]])
        >>> model.probabilities([0, 0, 1], [0, 0, 0], [1, 0, 0])
        array([0.5 , 0.25,  nan])
        """
        s, a, following = (
            _within(values, size, name)
            for values, size, name in (
                (states, self.states, "states"),
                (actions, self.actions, "actions"),
                (next_states, self.states, "next_states"),
            )
        )
        pair = s * self.actions + a
        keys, probability, unseen = self._by_key
        wanted = pair * self.states + following
        place = np.searchsorted(keys, wanted).clip(0, len(keys) - 1)
        found: Floats = np.where(keys[place] == wanted, probability[place], 0.0)
        found[unseen[pair]] = np.nan
        return found

    @cached_property
    def _by_key(self) -> tuple[NDArray[np.int64], Floats, NDArray[np.bool_]]:
        """Codes pair · |S| + s' of successors, their probabilities, and which pairs only lead back to their state."""
        start, following, probability = self.successors()
        count = np.diff(start)
        pair = np.repeat(np.arange(len(count)), count)
        order = np.lexsort((following, pair))
        back = (following == pair // self.actions) & (probability == 1)
        unseen = np.bincount(pair[back], minlength=len(count)) > 0
        return (pair * self.states + following)[order], probability[order], unseen


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best stationary policy: its action in each state, and its values."""

    actions: NDArray[np.uint32]
    values: Floats
    sweeps: int


def evaluate_policies(model: SparseModel, policies: Sequence[ArrayLike], horizon: int, discount: float) -> list[Floats]:
    """Return V of each policy as a (horizon, S) array, in which row t has horizon - t remaining steps.

    A policy is an (S, A) array of probabilities, or (horizon, S, A) if it depends on the step. Several policies at once
    cost little more than one.

    >>> import numpy as np
    >>> from offpolicy.mdp import SparseModel, evaluate_policies
    >>> forever = SparseModel.from_dense(rewards=[[1.0]], transitions=[[[1.0]]])
    >>> evaluate_policies(forever, [np.ones((1, 1))], horizon=3, discount=0.5)
    [array([[1.75],
           [1.5 ],
           [1.  ]])]
    """
    return [values[:, :, lane] for values, lane in values_side_by_side(model, policies, horizon, discount)]


def values_side_by_side(
    model: SparseModel, policies: Sequence[ArrayLike], horizon: int, discount: float
) -> list[tuple[Floats, int]]:
    """Return V as the core stores it: for each policy a shared (horizon, S, lanes) array, and its lane there."""
    horizon, discount = scalars.horizon(horizon), scalars.discount(discount)
    shape = (model.states, model.actions)
    tables = []
    for i, policy in enumerate(policies):
        table = np.ascontiguousarray(policy, dtype=np.float64)
        if table.shape not in (shape, (horizon, *shape)):
            raise bad_value(name=f"policy {i}", expected=f"{shape} or {(horizon, *shape)}", found=table.shape)
        tables.append(table.ravel())
    found: list[tuple[Floats, int]] = []
    for start in range(0, len(tables), LANES):
        group = tables[start : start + LANES]
        values = np.empty((horizon, model.states, len(group)))
        model.core.evaluate(group, float(discount), values)
        found += [(values, lane) for lane in range(len(group))]
    return found


def q_values(model: SparseModel, v: ArrayLike, step: int, discount: float) -> Floats:
    """Return Q as an (S, A) array at a step, from V as `evaluate_policies` returns it.

    >>> import numpy as np
    >>> from offpolicy.mdp import SparseModel, evaluate_policies, q_values
    >>> forever = SparseModel.from_dense(rewards=[[1.0, 2.0]], transitions=[[[1.0], [0.0]]])
    >>> v = evaluate_policies(forever, [np.array([[1.0, 0.0]])], horizon=3, discount=0.5)[0]
    >>> q_values(forever, v, step=0, discount=0.5)
    array([[1.75, 2.  ]])
    """
    step, discount = scalars.whole("step", step), scalars.discount(discount)
    try:
        return model.core.q_table(np.ascontiguousarray(v, dtype=np.float64), step, discount)
    except (ValueError, OverflowError) as error:
        raise core_refused(error=str(error)) from None


def optimal_policy(
    model: SparseModel, discount: float, maximize: bool = True, legal: ArrayLike | None = None
) -> Optimum:
    """Return the best stationary policy, or the worst, among the legal actions; of equal actions the first is taken.

    Value iteration runs until no value changes by more than δ, which is 1e-10 of the largest reward. V is then within
    δ/(1 - γ) of the optimum, and actions that differ by less than twice that are equal. `legal` is an (S, A) array.

    >>> import numpy as np
    >>> from offpolicy.mdp import SparseModel, optimal_policy
    >>> model = SparseModel.from_dense(rewards=[[1.0, 3.0]], transitions=[[[1.0], [0.0]]])
    >>> optimal_policy(model, discount=0.5).actions, optimal_policy(model, discount=0.9).actions
    (array([1], dtype=uint32), array([0], dtype=uint32))
    """
    discount, mask = scalars.discount(discount), None
    if legal is not None:
        mask = _flags(legal)
        if mask.shape != (model.states, model.actions):
            raise bad_value(name="legal", expected=(model.states, model.actions), found=mask.shape)
        mask = mask.ravel()
    try:
        return Optimum(*model.core.optimum(float(discount), maximize, mask))
    except ValueError as error:
        raise core_refused(error=str(error)) from None


def _integers(values: ArrayLike, name: str, also: type = np.int64) -> NDArray[Any]:
    """Return integers of 64 bits, or of the other width that the core takes."""
    array = np.asarray(values)
    if array.ndim != 1 or not (np.issubdtype(array.dtype, np.integer) or array.size == 0):
        raise bad_value(name=name, expected="a row of whole numbers", found=f"{array.dtype} of shape {array.shape}")
    return np.ascontiguousarray(array, dtype=also if array.dtype == also else np.int64)


def _within(values: ArrayLike, size: int, name: str) -> NDArray[np.int64]:
    array = _integers(values, name)
    if array.size and not (array.min() >= 0 and array.max() < size):
        raise outside_range(name=name, low="0", high=size - 1, lowest=array.min(), highest=array.max())
    return array


def _floats(values: ArrayLike, name: str) -> Floats:
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise bad_value(name=name, expected="a row of numbers", found=f"of shape {array.shape}")
    return array


def _flags(values: ArrayLike) -> NDArray[Any]:
    return np.ascontiguousarray(values, dtype=bool)
