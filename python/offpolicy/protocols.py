"""Protocols of domains, policies, models, generators of candidates and estimators, on NumPy arrays of n rows.

States are an (n, k) array with one column for each of `state_columns`. Actions are whole numbers 0, 1, …. `step` counts
from 0, and is one number for all rows or an array of n numbers.

A class that names a protocol as its base inherits the defaults here; any other object with the same members works too.
`KnownTransitions`, `BatchedValues`, `BatchedPolicy` and `TabulatedPolicy` are optional. Their methods make further
estimates possible, or look-ups faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offpolicy._util import scalars
from offpolicy._util.arrays import Actions as Actions
from offpolicy._util.arrays import Floats as Floats
from offpolicy._util.arrays import States as States
from offpolicy._util.arrays import Step as Step
from offpolicy.logs.block import Block
from offpolicy.simulation import rollouts


@runtime_checkable
class Policy(Protocol):
    """A policy π(a|s), which may depend on the step."""

    def probabilities(self, states: States, step: Step) -> Floats:
        """Return π(a|s) as an (n, actions) array; rows add to 1, and illegal actions have probability 0."""
        ...


@runtime_checkable
class ValueModel(Protocol):
    """A model's values of one policy: R̂, and Q̂ and V̂ of the steps from `step` to the horizon."""

    def q_hat(self, states: States, actions: Actions, step: Step) -> Floats:
        """Return Q̂(s, a), n values."""
        ...

    def v_hat(self, states: States, step: Step) -> Floats:
        """Return V̂(s) = Σ_a π(a|s) Q̂(s, a), n values."""
        ...

    def r_hat(self, states: States, actions: Actions) -> Floats:
        """Return R̂(s, a), n values."""
        ...


class Aggregation(Protocol):
    """A map from states to a finite number of cells, such as `offpolicy.Grid`."""

    @property
    def cells(self) -> int:
        """The number of cells."""
        ...

    def index(self, states: States) -> NDArray[np.int64]:
        """Return the cell of each state."""
        ...


@dataclass(frozen=True, eq=False)
class LoggedRows:
    """Rows of a log as `annotate` reads them: the stored columns, and the arrays that policies and models take.

    >>> rows = LoggedRows([np.array([2.0, 3.0])], np.array([1, 0], np.int32), np.array([1, 2]), first_step=1)
    >>> rows.states.tolist(), rows.actions, rows.steps
    ([[2.0], [3.0]], array([1, 0]), array([0, 1]))
    """

    state_columns: Sequence[NDArray[Any]]  # one column of n numbers per coordinate
    action_column: NDArray[Any]  # whole numbers, 32 or 64 bits wide
    step_column: NDArray[Any]  # as logged, from `first_step`
    first_step: int = 0
    threads: int = 1  # the largest number of threads for a look-up
    _cells: dict[int, NDArray[np.int64]] = field(default_factory=dict, repr=False)

    @cached_property
    def states(self) -> States:
        """The states s, (n, k)."""
        return np.stack(self.state_columns).T

    @cached_property
    def actions(self) -> NDArray[np.int64]:
        """The actions a, as 64-bit integers."""
        return self.action_column.astype(np.int64)

    @cached_property
    def steps(self) -> NDArray[np.int64]:
        """The steps t, from 0."""
        return self.step_column.astype(np.int64) - self.first_step

    def cells(self, aggregation: Aggregation) -> NDArray[np.int64]:
        """Return the cell of each state, which is cached; a grid computes it from the columns, on all threads."""
        if id(aggregation) not in self._cells:
            by_columns: Callable[..., NDArray[np.int64]] | None = getattr(aggregation, "index_columns", None)
            if by_columns is None:
                self._cells[id(aggregation)] = aggregation.index(self.states)
            else:
                self._cells[id(aggregation)] = by_columns(self.state_columns, self.threads)
        return self._cells[id(aggregation)]


@dataclass(frozen=True, eq=False)
class Question:
    """A request of `annotate` for a policy and its values at the rows of a log.

    `roles` are the requested columns: `target_prob` of the policy, and `q_hat`, `v_hat` and `r_hat` of the values.
    """

    policy: Policy | None
    values: ValueModel | None
    roles: frozenset[str]


class BatchedValues(ValueModel, Protocol):
    """Values that can be looked up for several policies and many rows at once; optional, for speed only."""

    def lookup_many(self, questions: Sequence[Question], rows: LoggedRows) -> list[dict[str, Floats]]:
        """Return n values per role for one or more of the first questions; `questions[0].values` is this object.

        The list has one answer for each of the first questions that one look-up can serve, and at least one. The
        remaining questions are passed to the values of the first of them. A role that is missing from an answer is
        computed by `q_hat`, `v_hat`, `r_hat` or the policy's `probabilities`, so that `[{}]` is a valid answer. Numbers
        must equal those of these methods, bit for bit if possible; `offpolicy.testing.check_fitter` compares them.
        """
        ...


class BatchedPolicy(Policy, Protocol):
    """A policy that gives π of the logged actions without a row of probabilities per state; optional."""

    def lookup(self, rows: LoggedRows) -> Floats:
        """Return π(a|s) of the logged actions, n values that equal those of `probabilities`."""
        ...


@dataclass(frozen=True, eq=False)
class PolicyTable:
    """A table π(a|cell), (cells, actions) or (steps, cells, actions); `uneven` marks rows divided by their sum."""

    probabilities: Floats
    uneven: NDArray[np.bool_]


class TabulatedPolicy(Policy, Protocol):
    """A policy that may depend on the cell of a state only, so that a table can hold it; optional."""

    @property
    def is_stationary(self) -> bool:
        """Whether the policy does not depend on the step."""
        ...

    def tabulated(self, aggregation: Aggregation, actions: int) -> PolicyTable | None:
        """Return the table over these cells if the policy depends on nothing else, and None otherwise."""
        ...


class KnownTransitions(Protocol):
    """A domain or a value model that gives P(s'|s, a); DR-v2 is unbiased if both do.

    A domain gives the true P. A value model gives the P̂ with which it computed V̂(s) = Σ_a π(a|s) (R̂(s, a) + γ Σ_s'
    P̂(s'|s, a) V̂(s')), where V̂ on the right has one remaining step less. Both are for states, not for cells of
    several states.
    """

    def transition_probability(self, states: States, actions: Actions, next_states: States) -> Floats:
        """Return the probability that the episode goes on in s', n values; over all s' they add to 1 - P(end).

        A model returns NaN for a pair (s, a) without data, for every s', and DR-v2 then takes the term of DR. A model
        without any P̂ raises `UnknownTransitionsError` with the reason, even for no rows. A model whose V̂ satisfies the
        equation above only approximately may have `transition_remark`, a sentence for the notes of a result.
        """
        ...


@runtime_checkable
class Model(Protocol):
    """A fitted model of a domain."""

    def values(self, policy: Policy, horizon: int, discount: float) -> ValueModel:
        """Return the finite-horizon values of a policy."""
        ...

    def optimal_policy(self, maximize: bool = True) -> Policy:
        """Return the best stationary policy of the model, or the worst."""
        ...


def values_of(model: Model, policies: Sequence[Policy], horizon: int, discount: float) -> list[ValueModel]:
    """Return the values of each policy, by `model.values_of(policies, horizon, discount)` if the model has it.

    This method is optional. It is for models that compute the values of several policies together at little extra cost.
    """
    together: Callable[[Sequence[Policy], int, float], list[ValueModel]] | None = getattr(model, "values_of", None)
    if together is None:
        return [model.values(policy, horizon, discount) for policy in policies]
    return together(policies, horizon, discount)


class Setting(Protocol):
    """The facts about a domain that a log does not contain; fitters and generators use only these."""

    name: str
    state_columns: Sequence[str]
    actions: int
    horizon: int
    discount: float
    reward_range: tuple[float, float]

    def legal(self, states: States) -> NDArray[np.bool_]:
        """Return which actions are legal, (n, actions); by default all are."""
        return np.ones((len(states), self.actions), dtype=bool)


class Domain(Setting, Protocol):
    """A setting that can be simulated."""

    @property
    def behavior(self) -> Policy:
        """The behaviour policy π0, which makes the logs."""
        ...

    def reset(self, n: int, rng: np.random.Generator) -> States:
        """Return n first states."""
        ...

    def step(
        self, states: States, actions: Actions, rng: np.random.Generator
    ) -> tuple[States, Floats, NDArray[np.bool_]]:
        """Return next states, rewards, and which rows have ended."""
        ...

    def simulate(self, policy: Policy, n: int, seed: int) -> pl.DataFrame:
        """Simulate a log of n episodes under a policy; `offpolicy.simulation.rollouts` describes its columns."""
        return rollouts.simulate(self, policy, n, seed)


@runtime_checkable
class ModelFitter(Protocol):
    """An object that makes a model from a log."""

    def fit(self, log: Any, domain: Setting) -> Model:
        """Fit a model of a domain to any log that `evaluate` reads."""
        ...


@dataclass(frozen=True)
class Candidate:
    """A candidate policy, with the share of the data and the model from which it was made.

    Episodes are ordered by a hash of their id (`offpolicy.folds`). The candidate was made from the first
    `train_fraction` of them, so that it must be evaluated on the others. `model`, fitted to the same first episodes,
    may serve as Q̂.

    >>> import offpolicy as op
    >>> op.Candidate("careful", op.policies.Uniform(actions=2)).train_fraction
    0.0
    """

    name: str
    policy: Policy
    train_fraction: float = 0.0
    model: Model | None = None


@runtime_checkable
class Generator(Protocol):
    """An object that proposes policies which may be better than the behaviour policy."""

    def candidates(self, log: Any, domain: Setting) -> Iterable[Candidate]:
        """Return the candidates, each with a different name."""
        ...


class Estimator(Protocol):
    """A mean over trajectories, x̄ = Σ x_i / n, of which a package tells the value x_i of each.

    It may also have `range(bounds, terms)`, the least and the largest value that a trajectory can have by the given
    `offpolicy.Bounds`, for the intervals that hold for finite samples; see `offpolicy.evaluation.bounds.Ranged`.
    """

    #: What it is, in a few words.
    name: str
    #: What it reads beside `reward`: `ratio`, `q_hat`, `v_hat`, `r_hat`, `transition_ratio`, or columns of its own.
    needs: Sequence[str]
    #: True where its expectation is the value of the target policy, if the logged probabilities are right.
    unbiased: bool
    #: True where its values are those of an unbiased estimator pulled towards 0.
    shrinks: bool = False
    #: Its defining equation, and where it is from.
    equation: str = ""
    reference: str = ""

    def values(self, block: Block) -> Floats:
        """Return the value of each trajectory of a block, n values, none of which depends on the other trajectories."""
        ...


@dataclass(frozen=True)
class LoggedDomain(Setting):
    """The setting of a log without a simulator.

    >>> import offpolicy as op
    >>> setting = op.LoggedDomain(state_columns=("age", "dose"), actions=3, horizon=20, reward_range=(0.0, 1.0))
    >>> setting.discount
    1.0

    `behavior` is the policy that made the log, or the way to estimate it from the log: `"counts"`, an `op.Grid` to
    count in, or a classifier. With it, `improve` and `cross_fit` estimate the probabilities of a log that has none, and
    generators make mixtures.
    """

    state_columns: Sequence[str]
    actions: int
    horizon: int
    reward_range: tuple[float, float]
    discount: float = 1.0
    name: str = "log"
    behavior: Any = None

    def __post_init__(self) -> None:
        """Raise an error for numbers that no log can have."""
        object.__setattr__(self, "actions", scalars.whole("actions", self.actions, 1, limit=scalars.MOST_ROWS))
        object.__setattr__(self, "horizon", scalars.horizon(self.horizon))
        object.__setattr__(self, "reward_range", scalars.span("reward_range", self.reward_range))
        object.__setattr__(self, "discount", scalars.discount(self.discount))
