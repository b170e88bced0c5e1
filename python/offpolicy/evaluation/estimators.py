"""The estimators by id: what each is, what it needs, and what may be expected of it.

Every estimator describes itself once. Those of the core do it in `rust/core/src/estimators`, one file for each, and all
other modules ask here for a trait and never compare an id:

    describe("dr").needs                                   the columns of one estimator
    named(lambda about: about.weighted)                    the ids of all that have a trait
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Protocol

from offpolicy import _core
from offpolicy._util.scalars import shown
from offpolicy.errors.hints import hint
from offpolicy.errors.kinds.of_arguments import at_least_one, unknown_name
from offpolicy.errors.kinds.of_evaluation import ids_in_one_text, not_an_id


class Description(Protocol):
    """What an estimator says of itself."""

    @property
    def id(self) -> str:
        """Its public name, such as "step-is"."""
        ...

    @property
    def name(self) -> str:
        """What it is, in a few words."""
        ...

    @property
    def equation(self) -> str:
        """Its defining equation in Unicode."""
        ...

    @property
    def reference(self) -> str:
        """Where it is from."""
        ...

    @property
    def needs(self) -> Sequence[str]:
        """Columns of the policy that it cannot do without, beside the reward: `ratio`, `q_hat`, `v_hat`, `r_hat`."""
        ...

    @property
    def reads(self) -> Sequence[str]:
        """Columns of the policy that it reads where the log has them."""
        ...

    @property
    def uses_weights(self) -> bool:
        """True where importance ratios weight the log."""
        ...

    @property
    def passes(self) -> int:
        """How often the log is read before value and standard error are known."""
        ...

    @property
    def value_pass(self) -> int:
        """How often the log is read before the value is known."""
        ...

    @property
    def unbiased(self) -> str:
        """When its expectation is the value: always, with-right-model, with-transition-ratio or in-the-limit."""
        ...

    @property
    def weighted(self) -> bool:
        """True for a ratio of sums over trajectories, or a blend of such: no mean of values of trajectories."""
        ...

    @property
    def blended(self) -> bool:
        """True for a blend of estimators, which has no values of single trajectories, not even influence values."""
        ...

    @property
    def shrinks(self) -> bool:
        """True where its values are unbiased ones pulled towards 0: it does not overestimate rewards above 0."""
        ...

    @property
    def weights_returns(self) -> bool:
        """True where one weight, ρ_{1:H}, values all rewards of a trajectory."""
        ...

    @property
    def of_behavior(self) -> bool:
        """True where it estimates the value of the behaviour policy, whatever the target."""
        ...

    @property
    def needs_baseline(self) -> bool:
        """True where it needs `baseline=`, of which it makes a table over the horizon."""
        ...

    @property
    def corrects_first_value(self) -> bool:
        """True where its value of a trajectory is V̂(s_1) and a weighted correction."""
        ...

    @property
    def model(self) -> str:
        """What it takes from a model: none, control-variate, transitions, blend or value."""
        ...

    @property
    def without_control(self) -> str | None:
        """The estimator that is left without its control variate."""
        ...

    @property
    def with_baseline(self) -> str | None:
        """The estimator that is the same with a constant `baseline` as its control variate."""
        ...

    @property
    def range(self) -> str:
        """How bounds limit the value of a trajectory; see `Bounds.range`."""
        ...

    @property
    def step_sums(self) -> Sequence[str]:
        """Sums over trajectories for each step that it is made of."""
        ...

    @property
    def only_when_asked(self) -> bool:
        """True where it is computed when it is named, and not among all that the columns allow."""
        ...


@cache
def estimators() -> Mapping[str, Description]:
    """Return all estimators by id, in the order of tables."""
    return {about.id: about for about in _core.estimators()}


def describe(estimator: str) -> Description:
    """Return what an estimator says of itself; an unknown id is refused with a suggestion.

    >>> describe("dr").needs
    ['ratio', 'q_hat', 'v_hat']
    >>> describe("drr")
    Traceback (most recent call last):
        ...
    offpolicy.errors.UsageError: no estimator 'drr'; did you mean 'dr'?
    """
    known = estimators()
    if estimator in known:
        return known[estimator]
    raise unknown_name(lack="no estimator", name=shown(estimator), hint=hint(estimator, list(known)))


def named(where: Callable[[Description], bool] = lambda _: True) -> tuple[str, ...]:
    """Return the ids of all estimators, or of those with a trait.

    >>> named(lambda about: about.of_behavior)
    ('mc',)
    """
    return tuple(about.id for about in estimators().values() if where(about))


def usual() -> tuple[str, ...]:
    """Return the ids of the estimators that are computed where none is named."""
    return named(lambda about: not about.only_when_asked)


def averaged() -> tuple[str, ...]:
    """Return the ids of the estimators that are means of weighted values of single trajectories."""
    return named(lambda about: about.uses_weights and not about.weighted)


def check_ids(ids: str | Iterable[str]) -> list[str]:
    """Return the ids in their order, without repeats; an unknown one is refused with a suggestion."""
    known = ", ".join(named())
    given = [ids] if isinstance(ids, str) else list(ids) if isinstance(ids, Iterable) else None
    if given is None or not all(isinstance(name, str) for name in given):
        raise not_an_id(found=shown(ids), known=known)
    chosen = list(dict.fromkeys(given))
    for name in chosen:
        if "," in name and name not in estimators():
            raise ids_in_one_text(name=repr(name), ids=[part.strip() for part in name.split(",")])
        describe(name)
    if not chosen:
        raise at_least_one(what="name", thing=f"estimator of {known}")
    return chosen


#: The estimator of the behaviour policy's own value.
(RETURNS,) = (about.id for about in _core.estimators() if about.of_behavior)
#: The estimators of the core by traits, for code that names some of them itself.
ESTIMATORS = tuple(about.id for about in _core.estimators())
NEEDS = {about.id: tuple(about.needs) for about in _core.estimators()}
WEIGHTED = frozenset(about.id for about in _core.estimators() if about.weighted)
BLENDED = frozenset(about.id for about in _core.estimators() if about.blended)
