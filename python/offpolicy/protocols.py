"""What a domain, a policy, a model and a generator of candidates must offer, on NumPy arrays of n rows at once.

States are an (n, k) array with a column for each of `state_columns`; actions are whole numbers 0, 1, …; `step` counts
from 0 and is one number for all rows or an array of n.

A class that names a protocol as its base inherits the defaults here; any other object with the same members works too.
`KnownTransitions`, `BatchedValues`, `BatchedPolicy` and `TabulatedPolicy` are optional: whoever offers their methods is
asked for more, or answers faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offpolicy._util.arrays import Actions as Actions
from offpolicy._util.arrays import Floats as Floats
from offpolicy._util.arrays import States as States
from offpolicy._util.arrays import Step as Step
from offpolicy.simulation import rollouts


@runtime_checkable
class Policy(Protocol):
    """π(a|s), which may depend on the step."""

    def probabilities(self, states: States, step: Step) -> Floats:
        """The (n, actions) array of π(a|s); rows add to 1, and what is forbidden has 0."""
        ...


@runtime_checkable
class ValueModel(Protocol):
    """What a model says of one policy over a horizon: Q̂, V̂ and R̂ with the steps that remain after `step`."""

    def q_hat(self, states: States, actions: Actions, step: Step) -> Floats:
        """Q̂(s, a), n values."""
        ...

    def v_hat(self, states: States, step: Step) -> Floats:
        """V̂(s) = Σ_a π(a|s) Q̂(s, a), n values."""
        ...

    def r_hat(self, states: States, actions: Actions) -> Floats:
        """R̂(s, a), n values."""
        ...


class Aggregation(Protocol):
    """A number of cells, and the cell of every state; `offpolicy.Grid` is one."""

    @property
    def cells(self) -> int:
        """How many there are."""
        ...

    def index(self, states: States) -> NDArray[np.int64]:
        """The cell of each state."""
        ...


@dataclass(frozen=True, eq=False)
class LoggedRows:
    """n rows of a log as `annotate` reads them: the columns as they are stored, and what is usually made of them.

    >>> rows = LoggedRows([np.array([2.0, 3.0])], np.array([1, 0], np.int32), np.array([1, 2]), first_step=1)
    >>> rows.states.tolist(), rows.actions, rows.steps
    ([[2.0], [3.0]], array([1, 0]), array([0, 1]))
    """

    state_columns: Sequence[NDArray[Any]]  # a column of n for each coordinate
    action_column: NDArray[Any]  # whole numbers, 32 or 64 bits wide
    step_column: NDArray[Any]  # as logged, from `first_step`
    first_step: int = 0
    threads: int = 1  # at most so many for a look-up
    _cells: dict[int, NDArray[np.int64]] = field(default_factory=dict, repr=False)

    @cached_property
    def states(self) -> States:
        """s, (n, k)."""
        return np.stack(self.state_columns).T

    @cached_property
    def actions(self) -> NDArray[np.int64]:
        """a, in 64 bits."""
        return self.action_column.astype(np.int64)

    @cached_property
    def steps(self) -> NDArray[np.int64]:
        """t, from 0."""
        return self.step_column.astype(np.int64) - self.first_step

    def cells(self, aggregation: Aggregation) -> NDArray[np.int64]:
        """Return the cell of each state, found once; a grid finds it without a matrix of states, on all threads."""
        if id(aggregation) not in self._cells:
            by_columns: Callable[..., NDArray[np.int64]] | None = getattr(aggregation, "index_columns", None)
            if by_columns is None:
                self._cells[id(aggregation)] = aggregation.index(self.states)
            else:
                self._cells[id(aggregation)] = by_columns(self.state_columns, self.threads)
        return self._cells[id(aggregation)]


@dataclass(frozen=True, eq=False)
class Question:
    """What `annotate` wants to know of a policy at the rows of a log.

    `roles` are the columns: `target_prob` of the policy; `q_hat`, `v_hat` and `r_hat` of the values.
    """

    policy: Policy | None
    values: ValueModel | None
    roles: frozenset[str]


class BatchedValues(ValueModel, Protocol):
    """Values that answer for several policies, and for many rows, at once: optional, for speed alone."""

    def lookup_many(self, questions: Sequence[Question], rows: LoggedRows) -> list[dict[str, Floats]]:
        """Return, for the first questions, n values for each role; `questions[0].values` is this object.

        As many questions are answered as one look-up can serve, from the first on, and at least one: the others are
        asked again, of the values of the first that is left. A role that an answer lacks is asked for by `q_hat`,
        `v_hat`, `r_hat` or the policy's `probabilities`, so that `[{}]` is an answer too. Numbers must be those that
        these methods give, bit for bit where possible; `offpolicy.testing.check_fitter` compares them.
        """
        ...


class BatchedPolicy(Policy, Protocol):
    """A policy that tells π of the logged actions without a row of probabilities for each state: optional."""

    def lookup(self, rows: LoggedRows) -> Floats:
        """π(a|s) of the logged actions, n values; the same numbers as in `probabilities`."""
        ...


@dataclass(frozen=True, eq=False)
class PolicyTable:
    """π(a|cell), (cells, actions) or (steps, cells, actions); `uneven` marks rows that were divided by their sum."""

    probabilities: Floats
    uneven: NDArray[np.bool_]


class TabulatedPolicy(Policy, Protocol):
    """A policy that may look at no more than the cell of a state: optional, so that it is looked up in a table."""

    @property
    def is_stationary(self) -> bool:
        """True if it does not look at the step."""
        ...

    def tabulated(self, aggregation: Aggregation, actions: int) -> PolicyTable | None:
        """The table over these cells, if that is all that the policy looks at; otherwise None."""
        ...


class KnownTransitions(Protocol):
    """P(s'|s, a), which a domain and a value model may offer: DR-v2 is unbiased where both do.

    A domain tells the true P, and a value model tells P̂, with which it made V̂: V̂(s) = Σ_a π(a|s) (R̂(s, a) + γ Σ_s'
    P̂(s'|s, a) V̂(s')), with one step less to go on the right. Both are about states, not about cells of several states.
    """

    def transition_probability(self, states: States, actions: Actions, next_states: States) -> Floats:
        """The probability that the episode goes on in s', n values; that it ends is what these lack to 1.

        A model gives NaN for a pair (s, a) that it knows nothing of, whatever s' is: DR-v2 then takes DR's term. One
        that cannot tell P̂ at all raises `UnknownTransitionsError` with the reason, even for no rows; one whose V̂ obeys
        the equation above only nearly may have `transition_remark`, a sentence for the notes of a result.
        """
        ...


@runtime_checkable
class Model(Protocol):
    """A fitted model of a domain."""

    def values(self, policy: Policy, horizon: int, discount: float) -> ValueModel:
        """The finite-horizon values of a policy."""
        ...

    def optimal_policy(self, maximize: bool = True) -> Policy:
        """The best stationary policy of the model, or the worst."""
        ...


def values_of(model: Model, policies: Sequence[Policy], horizon: int, discount: float) -> list[ValueModel]:
    """Return the values of each policy: by `model.values_of(policies, horizon, discount)` where the model has it.

    It is optional, for a model that finds the values of several policies together for little more than those of one.
    """
    together: Callable[[Sequence[Policy], int, float], list[ValueModel]] | None = getattr(model, "values_of", None)
    if together is None:
        return [model.values(policy, horizon, discount) for policy in policies]
    return together(policies, horizon, discount)


class Setting(Protocol):
    """What a log does not say of its domain; fitters and generators read no more than this."""

    name: str
    state_columns: Sequence[str]
    actions: int
    horizon: int
    discount: float
    reward_range: tuple[float, float]

    def legal(self, states: States) -> NDArray[np.bool_]:
        """The (n, actions) array of what may be done; everything, unless a domain says otherwise."""
        return np.ones((len(states), self.actions), dtype=bool)


class Domain(Setting, Protocol):
    """A setting that can be simulated."""

    @property
    def behavior(self) -> Policy:
        """π0, which makes the logs."""
        ...

    def reset(self, n: int, rng: np.random.Generator) -> States:
        """n first states."""
        ...

    def step(
        self, states: States, actions: Actions, rng: np.random.Generator
    ) -> tuple[States, Floats, NDArray[np.bool_]]:
        """Next states, rewards, and which rows have ended."""
        ...

    def simulate(self, policy: Policy, n: int, seed: int) -> pl.DataFrame:
        """The log of n episodes under a policy; see `offpolicy.simulation.rollouts` for its columns."""
        return rollouts.simulate(self, policy, n, seed)


@runtime_checkable
class ModelFitter(Protocol):
    """Makes a model from a log."""

    def fit(self, log: Any, domain: Setting) -> Model:
        """Fits to any log that `evaluate` reads, given what the log does not say."""
        ...


@dataclass(frozen=True)
class Candidate:
    """A policy to choose from, with the data and the model that it was made of.

    Episodes are put in the order of a hash of their id (`offpolicy.folds`); the candidate has seen the first
    `train_fraction` of them, so that it must be evaluated on the others, and `model`, fitted to those same first ones,
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
    """Proposes policies that might be better than the behaviour policy."""

    def candidates(self, log: Any, domain: Setting) -> Iterable[Candidate]:
        """The candidates, each with a name of its own."""
        ...


@dataclass(frozen=True)
class LoggedDomain(Setting):
    """The setting of a log without a simulator.

    >>> import offpolicy as op
    >>> setting = op.LoggedDomain(state_columns=("age", "dose"), actions=3, horizon=20, reward_range=(0.0, 1.0))
    >>> setting.discount
    1.0

    `behavior` names the policy that made the log, once for all who need it: the policy itself, or how it is estimated
    from the log, `"counts"`, an `op.Grid` to count in or a classifier. `improve` and `cross_fit` then estimate the
    probabilities of a log that has none, and generators mix with it.
    """

    state_columns: Sequence[str]
    actions: int
    horizon: int
    reward_range: tuple[float, float]
    discount: float = 1.0
    name: str = "log"
    behavior: Any = None
