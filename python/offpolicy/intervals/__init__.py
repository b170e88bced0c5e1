"""Confidence intervals, one file per method.

An interval has a kind, the numbers that it rests on, and, if it is withheld, the reason.

    method         kind           made from                            refuses
    normal, t      asymptotic     mean and standard error
    t-skew         asymptotic     values, or trajectories left out
    hoeffding      finite-sample  mean, given bounds                   weighted estimators
    bernstein      finite-sample  mean, variance, given bounds         weighted estimators
    betting        finite-sample  a sketch of values, given bounds     weighted estimators
    sequence       anytime        a sketch of values, given bounds     weighted estimators
    hcope          finite-sample  a sketch of values, given bounds     weighted estimators; bounds from below only
    anderson       finite-sample  a sketch of values, given bounds     weighted estimators
    likelihood     asymptotic     six sums of values and weights       weighted estimators, mc, reg
    bootstrap      heuristic      replicates of sums
    bootstrap-bca  heuristic      replicates of sums, and influence

All methods refuse `magic`, whose value depends on a model: its error is more than its spread (docs/results/magic says
by how much). The methods for finite samples refuse `reg`, and `dr-v2` if P̂/P is not known: with a wrong model, their
mean is not the value. The other methods learn the error from the spread of the sample and are withheld if it has none
(`rounding`). `auto` chooses one of the methods. Plugins add methods through the hook `offpolicy_intervals`. If an
interval is known to fall short, its `caution` says so (`shortfalls`). A two-sided interval of level 1 − δ misses on
each side with probability δ/2; a one-sided bound uses all of δ. Bounds on rewards, ratios and models are given by the
user, never taken from the sample. No interval depends on the order of trajectories, on how they are cut into files, or
on threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from offpolicy._util import scalars
from offpolicy._util.installed import Installed
from offpolicy.errors import OffPolicyError, TooLargeError
from offpolicy.errors.hints import suggestion
from offpolicy.errors.kinds.of_arguments import bad_value, unknown_name
from offpolicy.errors.kinds.of_plugins import maker_failed, wrong_description, wrong_numbers
from offpolicy.evaluation.estimators import describe
from offpolicy.intervals import (
    anderson,
    auto,
    bernstein,
    betting,
    bootstrap,
    hcope,
    hoeffding,
    likelihood,
    normal,
    sequence,
    shortfalls,
    skewed,
)
from offpolicy.intervals.request import Ends, Request, WithheldError
from offpolicy.intervals.result import SIDES, Interval
from offpolicy.intervals.rounding import no_spread

__all__ = [
    "CHOICES",
    "METHODS",
    "SIDES",
    "Ends",
    "Interval",
    "Method",
    "Request",
    "WithheldError",
    "check",
    "interval",
    "method_of",
]


#: Kinds with a guarantee for finite samples.
PROMISES = ("finite-sample", "anytime")
#: All kinds.
PROMISED = ("asymptotic", *PROMISES, "heuristic")


@dataclass(frozen=True)
class Method:
    """A method: its kind, the function that finds the ends, and the conditions under which it is valid."""

    kind: str
    ends: Callable[[Request], Ends]
    needs_means: bool = False  # valid for means over trajectories, not for ratios of sums
    needs_weights: bool = False
    only: str | None = None  # the only side that it bounds
    by_cluster: bool = False  # valid if only clusters of episodes are independent

    def check(self, request: Request) -> None:
        """Refuse a side or an estimator for which the method is not valid."""
        method, estimator, about = request.method, request.estimator, describe(request.estimator)
        if self.only not in (None, request.side):
            raise WithheldError(f'{method} bounds a value from below only: ask for side="{self.only}"')
        if request.samples.clusters is not None and not self.by_cluster:
            raise WithheldError(
                f"{method} needs independent episodes, and episodes of one cluster are not independent: ask for t"
            )
        if about.blended:
            raise WithheldError(
                f"the standard error of {estimator} is that of its blend, without the bias of the model in it: no "
                "interval follows; wdr has one"
            )
        if self.kind in PROMISES and (
            about.model == "value" or (about.model == "transitions" and not request.terms.transition_ratio)
        ):
            raise WithheldError(
                f"{method} would bound the mean of {estimator}, the value only if its model is right: ask for t"
            )
        if self.needs_means and about.weighted:
            raise WithheldError(f"{method} holds for means of independent values; {estimator} is a ratio of sums")
        if self.kind in PROMISES and about.unbiased == "in-the-limit":
            raise WithheldError(
                f"{method} would bound the mean of {estimator}, which is the value in the limit of many episodes only: "
                "ask for t"
            )
        if self.kind in PROMISES and about.unbiased == "never":
            raise WithheldError(
                f"{method} would bound the mean of {estimator}, which is not the value, for it is biased: ask for t"
            )
        if self.needs_weights and not about.uses_weights:
            raise WithheldError(f"{method} is about weights, and {estimator} has none: ask for t")


METHODS = {
    "normal": Method("asymptotic", normal.normal, by_cluster=True),
    "t": Method("asymptotic", normal.student, by_cluster=True),
    "t-skew": Method("asymptotic", skewed.ends),
    "hoeffding": Method("finite-sample", hoeffding.ends, needs_means=True),
    "bernstein": Method("finite-sample", bernstein.ends, needs_means=True),
    "betting": Method("finite-sample", betting.ends, needs_means=True),
    "sequence": Method("anytime", sequence.ends, needs_means=True),
    "hcope": Method("finite-sample", hcope.ends, needs_means=True, only="lower"),
    "anderson": Method("finite-sample", anderson.ends, needs_means=True),
    "likelihood": Method("asymptotic", likelihood.ends, needs_means=True, needs_weights=True),
    "bootstrap": Method("heuristic", bootstrap.percentile, by_cluster=True),
    "bootstrap-bca": Method("heuristic", bootstrap.bca, by_cluster=True),
}

#: The names that a user may give as a method, beside those of plugins.
CHOICES = (*METHODS, auto.AUTO)
#: The methods that plugins bring, by name.
INSTALLED: Installed[Method] = Installed()


def method_of(name: str) -> Method:
    """Return the method of a name, ours or that of a plugin; an unknown one is refused with a suggestion."""
    if isinstance(name, str) and (found := METHODS.get(name) or INSTALLED.find(name)) is not None:
        return found
    known = [*CHOICES, *INSTALLED.names()]
    hint = f"{suggestion(str(name), known) or ';'} there are {', '.join(known)}"
    raise unknown_name(lack="no interval", name=scalars.shown(name), hint=hint + INSTALLED.broken())


def of_plugin(name: str, plugin: str, made: object) -> Method:
    """Return a method that a plugin made, with ends that are checked each time."""
    who = f"interval {name!r} of plugin {plugin!r}"
    if not isinstance(made, Method):
        expected = "an offpolicy.intervals.Method"
        raise wrong_description(who=who, member="what is made", expected=expected, found=type(made).__name__)
    for member, found, allowed in (("kind", made.kind, PROMISED), ("only", made.only, (None, *SIDES[1:]))):
        if found not in allowed:
            expected = f"one of {', '.join(map(repr, allowed))}"
            raise wrong_description(who=who, member=member, expected=expected, found=scalars.shown(found))

    def ends(request: Request) -> Ends:
        try:
            found = made.ends(request)
        except OffPolicyError:
            raise
        except Exception as error:
            raise maker_failed(what=f"{who} failed", type=type(error).__name__, error=error) from error
        return _checked(who, request, found)

    return replace(made, ends=ends)


def _checked(who: str, request: Request, found: object) -> Ends:
    """Return the ends that were asked for; those of a plugin may be anything."""
    if not isinstance(found, Ends):
        raise wrong_numbers(who=who, expected="offpolicy.intervals.Ends", found=type(found).__name__)
    low, high = (found.low if request.wants_low else None), (found.high if request.wants_high else None)
    for end, wanted, name in ((low, request.wants_low, "low"), (high, request.wants_high, "high")):
        if wanted and (end is None or not scalars.is_number(end) or math.isnan(end)):
            raise wrong_numbers(who=who, expected=f"a number as {name}", found=scalars.shown(end))
    if low is not None and high is not None and low > high:
        raise wrong_numbers(who=who, expected="low <= high", found=f"({low}, {high})")
    return Ends(None if low is None else float(low), None if high is None else float(high), dict(found.assumptions))


def check(method: str, confidence: float, side: str = "two") -> None:
    """Refuse an unknown method or side, and a level outside (0, 1)."""
    if not isinstance(method, str) or method != auto.AUTO:
        method_of(method)
    scalars.choice("side", side, SIDES)
    if not (scalars.is_number(confidence) and 0 < confidence < 1 and 0.5 + confidence / 2 < 1):
        raise bad_value(name="confidence", expected="between 0 and 1", found=scalars.shown(confidence))


def interval(request: Request, withheld: str | None = None) -> Interval:
    """Return the interval of an estimate, or one without ends and with the reason.

    `withheld` is a reason that is already known.
    """
    check(request.method, request.confidence, request.side)
    if request.method == auto.AUTO:
        return auto.take(request, lambda name: interval(replace(request, method=name), withheld))
    return made_by(method_of(request.method), request, withheld)


def made_by(method: Method, request: Request, withheld: str | None = None) -> Interval:
    """Return the interval by a method, which the request calls by its name."""
    if method.only is not None and request.side == "two":
        request = replace(request, side=method.only)
    found = Interval(None, None, request.method, method.kind, request.confidence, side=request.side)
    try:
        if withheld is not None:
            raise WithheldError(withheld)
        method.check(request)
        if method.kind not in PROMISES and (reason := no_spread(request)) is not None:
            raise WithheldError(reason)
        with np.errstate(over="ignore"):
            ends = (request.own_ends() or method.ends)(request)
        if not all(math.isfinite(end) for end in (ends.low, ends.high) if end is not None):
            raise WithheldError("its ends are beyond the range of f64")
    except (WithheldError, TooLargeError) as why:
        return replace(found, reason=why.message)
    clusters = request.samples.clusters
    assumptions = ends.assumptions | ({} if clusters is None else {"clusters": clusters.count})
    reason, caution = request.vacuous(ends.low, ends.high), shortfalls.caution(request, ends)
    return replace(found, low=ends.low, high=ends.high, assumptions=assumptions, reason=reason, caution=caution)
