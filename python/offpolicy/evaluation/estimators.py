"""The estimators by id: what each is, what it needs, and what may be expected of it.

Every estimator describes itself once: those of the core in `rust/core/src/estimators` with one file for each, those of
other packages through the hook `offpolicy_estimators` (`from_plugins`). All other modules ask here for a trait instead
of comparing an id:

    describe("dr").needs                                   the columns that one estimator needs
    named(lambda about: about.weighted)                    the ids of all estimators with a trait
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
from offpolicy.evaluation.from_plugins import INSTALLED, FromPlugin


class Description(Protocol):
    """The description that an estimator gives of itself."""

    @property
    def id(self) -> str:
        """Return the public name of the estimator, such as "step-is"."""
        ...

    @property
    def name(self) -> str:
        """Return a few words that say what the estimator is."""
        ...

    @property
    def equation(self) -> str:
        """Return the defining equation in Unicode."""
        ...

    @property
    def reference(self) -> str:
        """Return the publication that the estimator is from."""
        ...

    @property
    def needs(self) -> Sequence[str]:
        """Return the columns that it must have beside the reward, among `ratio`, `q_hat`, `v_hat` and `r_hat`."""
        ...

    @property
    def reads(self) -> Sequence[str]:
        """Return the columns that it reads if the log has them."""
        ...

    @property
    def uses_weights(self) -> bool:
        """Return True if the estimator weights the log by importance ratios."""
        ...

    @property
    def passes(self) -> int:
        """Return how often the log is read before value and standard error are known."""
        ...

    @property
    def value_pass(self) -> int:
        """Return how often the log is read before the value is known."""
        ...

    @property
    def unbiased(self) -> str:
        """Return when its expectation is the value.

        This is one of always, with-right-model, with-transition-ratio, in-the-limit and never.
        """
        ...

    @property
    def weighted(self) -> bool:
        """Return True if it is a ratio of sums over trajectories or a blend of such, and not a mean of their values."""
        ...

    @property
    def blended(self) -> bool:
        """Return True if it blends estimators, so that single trajectories have neither values nor influence values."""
        ...

    @property
    def shrinks(self) -> bool:
        """Return True if its values are unbiased ones pulled towards 0.

        Where no reward is negative, its expectation is then at most the value.
        """
        ...

    @property
    def weights_returns(self) -> bool:
        """Return True if all rewards of a trajectory are multiplied by the one weight ρ_{1:H}."""
        ...

    @property
    def of_behavior(self) -> bool:
        """Return True if it estimates the value of the behaviour policy, whatever the target policy is."""
        ...

    @property
    def needs_baseline(self) -> bool:
        """Return True if it needs `baseline=`, from which it makes a table over the horizon."""
        ...

    @property
    def corrects_first_value(self) -> bool:
        """Return True if its value of a trajectory is V̂(s_1) plus a weighted correction."""
        ...

    @property
    def model(self) -> str:
        """Return what it takes from a model: none, control-variate, transitions, blend or value."""
        ...

    @property
    def without_control(self) -> str | None:
        """Return the id of the estimator that remains if its control variate is left out."""
        ...

    @property
    def with_baseline(self) -> str | None:
        """Return the id of the estimator that adds a constant `baseline` to it as a control variate."""
        ...

    @property
    def range(self) -> str:
        """Return by which of the cases of `Bounds.range` the value of a trajectory is bounded."""
        ...

    @property
    def step_sums(self) -> Sequence[str]:
        """Return the sums over trajectories, one per step, from which it is computed."""
        ...

    @property
    def only_when_asked(self) -> bool:
        """Return True if it is computed only where it is named, and not among all that the columns allow."""
        ...


@cache
def estimators() -> Mapping[str, Description]:
    """Return the estimators of the core by id, in the order of tables."""
    return {about.id: about for about in _core.estimators()}


def describe(estimator: str) -> Description:
    """Return the description of an estimator, or raise an error with a suggestion if the id is unknown.

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
    if (found := INSTALLED.find(estimator)) is not None:
        return found
    names = [*known, *INSTALLED.names()]
    raise unknown_name(lack="no estimator", name=shown(estimator), hint=hint(estimator, names) + INSTALLED.broken())


def from_plugin(estimator: str) -> FromPlugin | None:
    """Return an estimator of a plugin; None for one that the core computes."""
    about = describe(estimator)
    return about if isinstance(about, FromPlugin) else None


def is_known(estimator: str) -> bool:
    """Return True for an id that the core or a plugin has."""
    return estimator in estimators() or INSTALLED.find(estimator) is not None


def own_columns(estimators: Iterable[str]) -> list[str]:
    """Return the columns that estimators of plugins read by their names, beside those of the policy's roles."""
    found = (about for about in map(from_plugin, estimators) if about is not None)
    return list(dict.fromkeys(name for about in found for name in about.own_columns))


def named(where: Callable[[Description], bool] = lambda _: True) -> tuple[str, ...]:
    """Return the ids of all estimators of the core, or of those for which `where` is true.

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
    """Return the ids in their order without repeats, or raise an error with a suggestion if one is unknown."""
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
#: The estimators of the core, and some of their traits by id.
ESTIMATORS = tuple(about.id for about in _core.estimators())
NEEDS = {about.id: tuple(about.needs) for about in _core.estimators()}
WEIGHTED = frozenset(about.id for about in _core.estimators() if about.weighted)
BLENDED = frozenset(about.id for about in _core.estimators() if about.blended)
