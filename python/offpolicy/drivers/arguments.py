"""The arguments of the drivers, which are checked before any row is read.

A fitter or generator may have a method `missing(domain)`, which returns one sentence for each thing that it lacks.
`improve` collects these sentences and reports everything that is missing in one error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from offpolicy._util import words
from offpolicy._util.phrase import joined, phrase
from offpolicy._util.scalars import at_least_0, is_number, shown, text, whole
from offpolicy.drivers.candidates import make_generator
from offpolicy.drivers.split_log import Parts
from offpolicy.errors.kinds.of_arguments import (
    bad_value,
    give_one,
    lacks_member,
    name_of_behavior,
    not_a_name,
    not_a_policy,
    nothing_given,
    policies_need_names,
    wrong_object,
)
from offpolicy.errors.kinds.of_drivers import things_missing
from offpolicy.evaluation.estimators import check_ids, describe
from offpolicy.evaluation.plan import BEHAVIOR, TARGET, Settings
from offpolicy.extensions import plugins
from offpolicy.folds import MOST_FOLDS
from offpolicy.grid import Grid
from offpolicy.logs.columns import Columns
from offpolicy.logs.sources import Source
from offpolicy.protocols import Generator, ModelFitter, Policy, Setting

#: The value of `behavior=` that asks to count actions in the cells of the domain's grid.
COUNTS = "counts"
#: The message if both ways to split the log are given.
NOT_BOTH = phrase("{folds} or {fraction}, not both", folds=words.FOLDS, fraction=words.TRAIN_FRACTION)
#: The members that every domain must have.
MEMBERS = ("name", "state_columns", "actions", "horizon", "discount", "reward_range", "legal")


def read_parts(folds: Any, train_fraction: Any, seed: int) -> Parts:
    """Return the k folds, 2 by default, or the two parts of a split."""
    seed = whole("seed", seed)
    if train_fraction is None:
        count = 2 if folds is None else whole("folds", folds, 2, "the number of episodes")
        if count > MOST_FOLDS:
            raise bad_value(name="folds", expected=f"at most {MOST_FOLDS}", found=count)
        return Parts.folds(count, seed)
    if folds is not None:
        raise give_one(choices=NOT_BOTH)
    return Parts.train_and_test(read_fraction(train_fraction), seed)


def read_fraction(train_fraction: Any) -> float:
    """Return the share of the log to fit a model to, and refuse one that is not between 0 and 1."""
    if not (is_number(train_fraction) and 0 < train_fraction < 1):
        raise bad_value(name=words.TRAIN_FRACTION, expected="between 0 and 1", found=shown(train_fraction))
    return float(train_fraction)


def read_policies(policy: Any, argument: str = "policy") -> dict[str, Policy]:
    """Return the target policies by name; a single policy gets the name that `evaluate` gives it."""
    if isinstance(policy, list | tuple):
        raise policies_need_names(found=type(policy).__name__)
    found = dict(policy) if isinstance(policy, Mapping) else {TARGET: policy}
    if not found:
        raise nothing_given(what=words.argument(argument), thing="policy")
    for name, each in found.items():
        if name == BEHAVIOR:
            raise name_of_behavior(name=repr(BEHAVIOR))
        if not isinstance(name, str):
            raise not_a_name(found=shown(name))
        text("the name of a policy", name)
        if not callable(getattr(each, "probabilities", None)):
            raise not_a_policy(name=repr(name), found=type(each).__name__)
    return found


def read_fitter(fitter: Any) -> ModelFitter:
    """Return the fitter itself, or the one of that name."""
    if isinstance(fitter, str):
        return plugins.fitter(fitter)
    if not callable(getattr(fitter, "fit", None)):
        raise wrong_object(
            argument=words.argument("fitter"),
            expected="a name or an object with fit(log, domain)",
            found=type(fitter).__name__,
        )
    found: ModelFitter = fitter
    return found


def behavior_of(behavior: Any, domain: Setting, logged: bool) -> Any:
    """Return how π0 is estimated: as requested, or as the domain says if the log has no probabilities."""
    own = getattr(domain, "behavior", None)
    wanted = behavior is None and not logged and not callable(getattr(own, "probabilities", None))
    return own if wanted else behavior


def read_behavior(behavior: Any, smoothing: Any) -> dict[str, Any] | None:
    """Return the options with which `behavior_columns` estimates π0, or None if it is logged."""
    if behavior is None:
        return None
    added = {"smoothing": at_least_0("smoothing", smoothing)}
    if isinstance(behavior, Grid):
        return {"aggregate": behavior} | added
    if callable(getattr(behavior, "predict_proba", None)):
        return {"classifier": behavior} | added
    if not isinstance(behavior, str) or behavior != COUNTS:
        raise wrong_object(
            argument=words.argument("behavior"),
            expected=f"{COUNTS!r}, an op.Grid or a classifier with predict_proba",
            found=shown(behavior),
        )
    return added


def read_estimators(estimators: Any, beside: Sequence[str]) -> list[str] | None:
    """Return the ids with those in `beside`, or None for all estimators."""
    if estimators is None:
        return None
    return check_ids([*check_ids(estimators), *beside])


class Revised:
    """A domain with another horizon or discount; everything else is its own."""

    def __init__(self, domain: Setting, horizon: int | None, discount: float | None) -> None:
        """Keep the domain's own horizon or discount if the argument is None."""
        self._domain = domain
        self.horizon = domain.horizon if horizon is None else horizon
        self.discount = domain.discount if discount is None else discount

    def __getattr__(self, name: str) -> Any:
        """Return any other member from the domain."""
        if name.startswith("__") or name == "_domain":  # `copy` and `pickle` look these up before `_domain` is set
            raise AttributeError(name)
        return getattr(self._domain, name)

    def __repr__(self) -> str:
        """Return the domain with its horizon and discount."""
        return f"{self._domain!r} with horizon={self.horizon}, discount={self.discount}"


def read_domain(domain: Any, horizon: Any, discount: Any) -> Setting:
    """Return the domain itself, or the one of that name, with this horizon and discount."""
    found = plugins.domain(domain) if isinstance(domain, str) else domain
    for member in MEMBERS:
        if not hasattr(found, member):
            raise lacks_member(needs="domain= takes a name or a domain", found=type(found).__name__, member=member)
    setting: Any = found if horizon is None and discount is None else Revised(found, horizon, discount)
    chosen: Setting = setting
    return chosen


def read_settings(domain: Setting, baseline: float | None, truncation: str | None) -> Settings:
    """Return the settings of the evaluations, with the domain's horizon and discount."""
    if truncation is not None and not (isinstance(truncation, str) and truncation == "as-terminal"):
        raise bad_value(
            name="truncation", expected="'as-terminal' or None where models are fitted", found=shown(truncation)
        )
    return Settings(domain.discount, domain.horizon, baseline, truncation=truncation)


def missing_of(part: Any, domain: Setting) -> list[str]:
    """Return what a fitter or generator says that it lacks for this domain."""
    tells = getattr(part, "missing", None)
    return list(tells(domain)) if callable(tells) else []


def refuse_what_is_missing(
    source: Source,
    columns: Columns,
    domain: Setting,
    behavior: Any,
    generator: str | Generator | Mapping[str, Policy],
    fitter: str | ModelFitter,
    estimator: str,
) -> None:
    """Report all missing things in one error if there are several; a single one is reported where it is needed."""
    chosen = read_fitter(fitter)
    lacking = [] if isinstance(generator, Mapping) else missing_of(make_generator(generator, fitter), domain)
    if any(role != "ratio" for role in describe(estimator).needs):
        lacking += [lack for lack in missing_of(chosen, domain) if lack not in lacking]
    if behavior is None and not columns.has_behavior(source.columns):
        lacking.append(
            phrase(
                "the log has no column {name}: name it with {column}, or have it estimated with {behavior} ('counts', "
                "an op.Grid or a classifier)",
                name=repr(columns.behavior_prob),
                column=words.column("behavior_prob"),
                behavior=words.argument("behavior"),
            )
        )
    if len(lacking) > 1:
        raise things_missing(things=joined("\n  ", [f"{len(lacking)} things are missing", *lacking]))


def described_behavior(behavior: Any, smoothing: float) -> dict[str, Any]:
    """Return the entries of a result that say whether the probabilities of π0 are logged or estimated."""
    how = (None, None) if behavior is None else (described(behavior), smoothing)
    return dict(zip(("behavior", "smoothing"), how, strict=True))


def described(thing: object) -> str:
    """Return how a result names an object: a text as it is, else its repr, or its type if the repr is an address."""
    said = thing if isinstance(thing, str) else repr(thing)
    return type(thing).__name__ if " at 0x" in said else said
