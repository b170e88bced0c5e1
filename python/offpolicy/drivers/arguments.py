"""What the drivers are asked for, read and checked before a row is.

A fitter or generator may have `missing(domain)`, which gives a sentence for each thing that it lacks: all that is
missing for an improvement is said at once.
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

#: `behavior=` to count actions in the cells of the domain's grid.
COUNTS = "counts"
#: Two ways to put the log into parts.
NOT_BOTH = phrase("{folds} or {fraction}, not both", folds=words.FOLDS, fraction=words.TRAIN_FRACTION)
#: What is read of a domain.
MEMBERS = ("name", "state_columns", "actions", "horizon", "discount", "reward_range", "legal")


def read_parts(folds: Any, train_fraction: Any, seed: int) -> Parts:
    """k folds, 2 by default, or the two parts of a split."""
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
    """How much of a log goes to a model: some of it, but not all."""
    if not (is_number(train_fraction) and 0 < train_fraction < 1):
        raise bad_value(name=words.TRAIN_FRACTION, expected="between 0 and 1", found=shown(train_fraction))
    return float(train_fraction)


def read_policies(policy: Any, argument: str = "policy") -> dict[str, Policy]:
    """Target policies by name; one alone has the name that `evaluate` gives it."""
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
    """The fitter itself, or the one of that name."""
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
    """Return how π0 is estimated: as asked, or as the domain says where the log has no probabilities."""
    own = getattr(domain, "behavior", None)
    wanted = behavior is None and not logged and not callable(getattr(own, "probabilities", None))
    return own if wanted else behavior


def read_behavior(behavior: Any, smoothing: Any) -> dict[str, Any] | None:
    """How `behavior_column` is to estimate π0; None where it is logged."""
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
    """The ids, with those that are reported beside; None for all."""
    if estimators is None:
        return None
    return check_ids([*check_ids(estimators), *beside])


class Revised:
    """A domain with another horizon or discount; the rest is its own."""

    def __init__(self, domain: Setting, horizon: int | None, discount: float | None) -> None:
        """Keeps the domain's own where there is no other."""
        self._domain = domain
        self.horizon = domain.horizon if horizon is None else horizon
        self.discount = domain.discount if discount is None else discount

    def __getattr__(self, name: str) -> Any:
        """What is not revised."""
        if name.startswith("__") or name == "_domain":  # asked for while a copy is being made
            raise AttributeError(name)
        return getattr(self._domain, name)

    def __repr__(self) -> str:
        """The domain, and what is revised."""
        return f"{self._domain!r} with horizon={self.horizon}, discount={self.discount}"


def read_domain(domain: Any, horizon: Any, discount: Any) -> Setting:
    """The domain itself, or the one of that name, with this horizon and discount."""
    found = plugins.domain(domain) if isinstance(domain, str) else domain
    for member in MEMBERS:
        if not hasattr(found, member):
            raise lacks_member(needs="domain= takes a name or a domain", found=type(found).__name__, member=member)
    setting: Any = found if horizon is None and discount is None else Revised(found, horizon, discount)
    chosen: Setting = setting
    return chosen


def read_settings(domain: Setting, baseline: float | None, truncation: str | None) -> Settings:
    """The numbers of the evaluations to come, with the domain's horizon and discount; one of NumPy's will do."""
    if truncation is not None and not (isinstance(truncation, str) and truncation == "as-terminal"):
        raise bad_value(
            name="truncation", expected="'as-terminal' or None where models are fitted", found=shown(truncation)
        )
    return Settings(domain.discount, domain.horizon, baseline, truncation=truncation)


def missing_of(part: Any, domain: Setting) -> list[str]:
    """Return what a fitter or generator lacks for this domain, where it can tell beforehand."""
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
    """Refuse with everything that is known to be missing; one thing alone is told by whoever needs it."""
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
    """How a result says where the probabilities of π0 are from: the log, or an estimate."""
    how = (None, None) if behavior is None else (described(behavior), smoothing)
    return dict(zip(("behavior", "smoothing"), how, strict=True))


def described(thing: object) -> str:
    """What a result calls it: its name, its own words, or its type where those are but an address."""
    said = thing if isinstance(thing, str) else repr(thing)
    return type(thing).__name__ if " at 0x" in said else said
