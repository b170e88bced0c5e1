"""Target policies of all kinds; each gives π(a|s) as an (n, actions) array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from offpolicy._util.mixing import mixed
from offpolicy._util.probabilities import TOLERANCE, checked, count
from offpolicy._util.scalars import MOST_ROWS, above_0, number, whole
from offpolicy.errors.kinds.of_arguments import bad_value
from offpolicy.errors.kinds.of_simulation import (
    no_legal_action,
    not_to_be_mixed,
    steps_outside_table,
    values_not_finite,
    wrong_array,
)
from offpolicy.models.tables import Tables, flat
from offpolicy.models.tabulation import tabulated
from offpolicy.protocols import (
    Aggregation,
    Floats,
    LoggedRows,
    Policy,
    PolicyTable,
    States,
    Step,
    ValueModel,
)

Legal: TypeAlias = Callable[[States], NDArray[np.bool_]]
Found = TypeVar("Found")


@dataclass(frozen=True)
class Uniform:
    """The policy that takes all legal actions with equal probability.

    >>> import numpy as np, offpolicy as op
    >>> op.policies.Uniform(actions=4).probabilities(np.zeros((1, 2)), 0)
    array([[0.25, 0.25, 0.25, 0.25]])
    """

    actions: int
    legal: Legal | None = None

    def __post_init__(self) -> None:
        """Raise an error for a number of actions that is not a whole number of at least 1."""
        object.__setattr__(self, "actions", whole("actions", self.actions, 1, limit=MOST_ROWS))

    def probabilities(self, states: States, step: Step) -> Floats:
        """Return 1 / (number of legal actions) for legal actions and 0 for others."""
        if self.legal is None:
            return np.full((len(states), self.actions), 1 / self.actions)
        allowed = _allowed(self.legal, states, (len(states), self.actions))
        pi: Floats = allowed / allowed.sum(axis=1, keepdims=True)
        return pi

    @property
    def is_stationary(self) -> bool:
        """Always True."""
        return True

    def tabulated(self, aggregation: Aggregation, actions: int) -> PolicyTable | None:
        """Return a table with the same row for every cell, or None if some actions may be illegal."""
        if self.legal is not None or self.actions != actions:
            return None
        return PolicyTable(
            np.full((aggregation.cells, actions), 1 / actions), np.zeros(aggregation.cells, dtype=np.bool_)
        )


@dataclass(frozen=True, eq=False)
class TabularPolicy:
    """A policy from a table over the cells of a grid, (cells, actions) or (horizon, cells, actions).

    >>> import numpy as np, offpolicy as op
    >>> table = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> op.policies.TabularPolicy(table, op.Grid((2,))).probabilities(np.array([[1]]), 0)
    array([[0.2, 0.8]])
    """

    table: Floats
    grid: Aggregation
    uneven: NDArray[np.bool_] = field(init=False, repr=False)  # the rows that were divided by their sum

    def __post_init__(self) -> None:
        """Raise an error for a table that does not hold probabilities."""
        if self.table.ndim not in (2, 3) or self.table.shape[-2] != self.grid.cells:
            raise bad_value(name="the table", expected=f"(…, {self.grid.cells}, actions)", found=self.table.shape)
        table = checked(self.table.reshape(-1, self.table.shape[-1]), "the table").reshape(self.table.shape)
        object.__setattr__(self, "uneven", np.abs(self.table.sum(axis=-1, dtype=np.float64) - 1) > TOLERANCE)
        object.__setattr__(self, "table", table)

    def probabilities(self, states: States, step: Step) -> Floats:
        """Return the rows of the table for the cells of the states."""
        cell, steps = self.grid.index(states), np.asarray(step)
        if self.table.ndim == 3 and ((steps < 0) | (steps >= len(self.table))).any():
            raise steps_outside_table(
                what="the table has", last=len(self.table) - 1, but="and not", lowest=steps.min(), highest=steps.max()
            )
        row = cell if self.table.ndim == 2 else (steps, cell)
        count(self.uneven[row])
        found: Floats = self.table[row]
        return found

    @property
    def is_stationary(self) -> bool:
        """Whether there is one table for all steps."""
        return self.table.ndim == 2

    def tabulated(self, aggregation: Aggregation, actions: int) -> PolicyTable | None:
        """Return the table itself if these are its own cells, and None otherwise."""
        same = self.grid == aggregation and self.table.shape[-1] == actions
        return PolicyTable(self.table, self.uneven) if same else None

    def lookup(self, rows: LoggedRows) -> Floats:
        """Return π(a|s) of the logged actions, on all threads and without a row of probabilities per state."""
        horizon = np.iinfo(np.int64).max if self.is_stationary else len(self.table)
        tables, cells = Tables((horizon, *self.table.shape[-2:]), flat(self.table), None), rows.cells(self.grid)
        (found,) = tables.look_up(cells, rows, [True, False, False, False])
        if self.uneven.any():
            count(self.uneven[cells if self.is_stationary else (rows.steps, cells)])
        return found["target_prob"]


@dataclass(frozen=True)
class Mixture:
    """The mixture (1-α)π + απ0 of a policy with the behaviour policy.

    >>> import numpy as np, offpolicy as op
    >>> always = op.policies.FromCallable(lambda states, step: np.tile([1.0, 0.0], (len(states), 1)))
    >>> op.policies.Mixture(always, op.policies.Uniform(2), alpha=0.5).probabilities(np.zeros((1, 1)), 0)
    array([[0.75, 0.25]])
    """

    policy: Policy
    behavior: Policy
    alpha: float

    def __post_init__(self) -> None:
        """Raise an error for an α outside [0, 1]."""
        object.__setattr__(self, "alpha", number("alpha", self.alpha, 0, 1, "between 0 and 1"))

    def probabilities(self, states: States, step: Step) -> Floats:
        """Return (1-α)π + απ0 at these states."""
        return probabilities_of([self], states, step)[0]

    def mixed(self, ours: Floats, theirs: Floats) -> Floats:
        """Return (1-α)π + απ0 of given probabilities."""
        if ours.shape[-1] != theirs.shape[-1]:
            raise not_to_be_mixed(ours=ours.shape[-1], theirs=theirs.shape[-1])
        made: Floats = mixed(self.alpha, ours, theirs)
        return made

    @property
    def is_stationary(self) -> bool:
        """Whether both parts are stationary."""
        parts = parts_first([self], lambda part: getattr(part, "is_stationary", False), lambda _, *both: all(both))
        return parts[0]

    def tabulated(self, aggregation: Aggregation, actions: int) -> PolicyTable | None:
        """Return the mixture of both parts' tables, or None if a part has none."""

        def mix(mixture: Mixture, ours: PolicyTable | None, theirs: PolicyTable | None) -> PolicyTable | None:
            if ours is None or theirs is None:
                return None
            pi = mixture.mixed(ours.probabilities, theirs.probabilities)
            return PolicyTable(pi, ours.uneven | theirs.uneven)

        return parts_first([self], lambda part: tabulated(part, aggregation, actions), mix)[0]


@dataclass(frozen=True)
class EpsilonGreedy:
    """The policy that takes the best action by Q̂ with probability 1-ε, and otherwise any legal action.

    The first of equally good actions counts as the best.

    >>> import numpy as np, offpolicy as op
    >>> q = lambda states, step: np.tile([1.0, 3.0], (len(states), 1))
    >>> op.policies.EpsilonGreedy(q, epsilon=0.2).probabilities(np.zeros((1, 1)), 0)
    array([[0.1, 0.9]])
    """

    q: Callable[[States, Step], Floats]
    epsilon: float = 0.0
    legal: Legal | None = None

    def __post_init__(self) -> None:
        """Raise an error for an ε outside [0, 1]."""
        object.__setattr__(self, "epsilon", number("epsilon", self.epsilon, 0, 1, "between 0 and 1"))

    def probabilities(self, states: States, step: Step) -> Floats:
        """Return ε divided among all legal actions, plus 1-ε for the best one."""
        q = _values(self.q, states, step)
        allowed = _allowed(self.legal, states, q.shape)
        best = np.where(allowed, q, -np.inf).argmax(axis=1)
        pi: Floats = self.epsilon * allowed / allowed.sum(axis=1, keepdims=True)
        pi[np.arange(len(q)), best] += 1 - self.epsilon
        return pi


@dataclass(frozen=True)
class Softmax:
    """The policy π(a|s) ∝ exp(Q̂(s, a)/temperature) over legal actions.

    >>> import numpy as np, offpolicy as op
    >>> q = lambda states, step: np.tile([0.0, np.log(3.0)], (len(states), 1))
    >>> op.policies.Softmax(q).probabilities(np.zeros((1, 1)), 0).round(3)
    array([[0.25, 0.75]])
    """

    q: Callable[[States, Step], Floats]
    temperature: float = 1.0
    legal: Legal | None = None

    def __post_init__(self) -> None:
        """Raise an error for a temperature that is not positive and finite."""
        object.__setattr__(self, "temperature", above_0("temperature", self.temperature))

    def probabilities(self, states: States, step: Step) -> Floats:
        """Return π(a|s), computed with Q̂ less its largest value, so that nothing overflows."""
        q = _values(self.q, states, step)
        q = np.where(_allowed(self.legal, states, q.shape), q, -np.inf)
        weights = np.exp((q - q.max(axis=1, keepdims=True)) / self.temperature)
        pi: Floats = weights / weights.sum(axis=1, keepdims=True)
        return pi


@dataclass(frozen=True)
class FromCallable:
    """A policy from a function of states and step, whose probabilities are checked.

    >>> import numpy as np, offpolicy as op
    >>> op.policies.FromCallable(lambda states, step: np.full((len(states), 2), 0.7)).probabilities(np.zeros((1, 1)), 0)
    Traceback (most recent call last):
        ...
    offpolicy.errors.OffPolicyError: the policy's probabilities of row 0 add to 1.4, not 1: they differ by 0.4...
    """

    function: Callable[[States, Step], Any]

    def probabilities(self, states: States, step: Step) -> Floats:
        """Return the checked probabilities of the function."""
        return checked(self.function(states, step), "the policy", len(states))


@dataclass(frozen=True, eq=False)
class FromClassifier:
    """A policy from any object with scikit-learn's `predict_proba` and `classes_`; unknown actions have probability 0.

    >>> import numpy as np, offpolicy as op
    >>> class Coin:
    ...     classes_ = np.array([0, 2])
    ...     def predict_proba(self, states):
    ...         return np.full((len(states), 2), 0.5)
    >>> op.policies.FromClassifier(Coin(), actions=3).probabilities(np.zeros((1, 1)), 0)
    array([[0.5, 0. , 0.5]])
    """

    classifier: Any
    actions: int

    def __post_init__(self) -> None:
        """Raise an error for classes that are not actions."""
        object.__setattr__(self, "actions", whole("actions", self.actions, 1, limit=MOST_ROWS))
        classes = np.asarray(self.classifier.classes_)
        if not np.issubdtype(classes.dtype, np.integer) or not ((classes >= 0) & (classes < self.actions)).all():
            raise bad_value(name="the classifier's classes", expected=f"actions 0 to {self.actions - 1}", found=classes)

    def probabilities(self, states: States, step: Step) -> Floats:
        """Return the classifier's probabilities in the order of the actions."""
        pi = np.zeros((len(states), self.actions))
        if not len(states):  # scikit-learn raises an error
            return pi
        pi[:, np.asarray(self.classifier.classes_)] = self.classifier.predict_proba(states)
        return checked(pi, "the classifier", len(states))

    @property
    def is_stationary(self) -> bool:
        """Always True, because a classifier does not see the step."""
        return True


def probabilities_of(policies: Sequence[Policy], states: States, step: Step) -> list[Floats]:
    """Return π(a|s) of several policies; a policy that is part of several mixtures is asked only once.

    >>> import numpy as np, offpolicy as op
    >>> from offpolicy.policies import probabilities_of
    >>> always = op.policies.FromCallable(lambda states, step: np.tile([1.0, 0.0], (len(states), 1)))
    >>> mixtures = [op.policies.Mixture(always, op.policies.Uniform(2), alpha) for alpha in (0.0, 0.5)]
    >>> probabilities_of(mixtures, np.zeros((1, 1)), 0)
    [array([[1., 0.]]), array([[0.75, 0.25]])]
    """
    return parts_first(policies, lambda policy: policy.probabilities(states, step), Mixture.mixed)


def parts_first(
    policies: Sequence[Policy],
    of_part: Callable[[Policy], Found],
    of_mixture: Callable[[Mixture, Found, Found], Found],
    found: dict[int, Found] | None = None,
) -> list[Found]:
    """Map each policy to a result; each part of a mixture is mapped once, and the results of its parts are combined.

    `found` caches results by the policies' `id` between calls.
    """
    found = {} if found is None else found
    waiting = list(policies)
    while waiting:  # mixtures of mixtures may be deeper than the stack
        policy = waiting.pop()
        if id(policy) in found:
            continue
        if not isinstance(policy, Mixture):
            found[id(policy)] = of_part(policy)
        elif missing := [part for part in (policy.behavior, policy.policy) if id(part) not in found]:
            waiting += [policy, *missing]
        else:
            found[id(policy)] = of_mixture(policy, found[id(policy.policy)], found[id(policy.behavior)])
    return [found[id(policy)] for policy in policies]


def every_action(values: ValueModel, actions: int) -> Callable[[States, Step], Floats]:
    """Return a function for a model's Q̂ of all actions, as `EpsilonGreedy` and `Softmax` take it."""

    def q(states: States, step: Step) -> Floats:
        n = len(states)
        columns = [values.q_hat(states, np.full(n, a), step) for a in range(actions)]
        return np.stack(columns, axis=1)

    return q


def _values(q: Callable[[States, Step], Floats], states: States, step: Step) -> Floats:
    values = np.asarray(q(states, step), dtype=float)
    if values.ndim != 2 or len(values) != len(states):
        raise wrong_array(who="q", expected=f"an array of (n, actions) for {len(states)} states", found=values.shape)
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values).all(axis=1)))
        raise values_not_finite(what=f"q of row {row} is {values[row]}; every value")
    return values


def _allowed(legal: Legal | None, states: States, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    if legal is None:
        return np.ones(shape, dtype=bool)
    allowed = np.asarray(legal(states), dtype=bool)
    if allowed.shape != shape:
        raise wrong_array(who="legal", expected=f"an array of (n, actions) = {shape}", found=allowed.shape)
    some = allowed.any(axis=1)
    if not some.all():
        row = int(np.argmin(some))
        raise no_legal_action(row=row, state=states[row])
    return allowed
