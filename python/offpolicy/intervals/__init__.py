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
(`rounding`). `auto` chooses one of the methods. If an interval is known to fall short, its `caution` says so
(`shortfalls`). A two-sided interval of level 1 − δ misses on each side with probability δ/2; a one-sided bound uses all
of δ. Bounds on rewards, ratios and models are given by the user, never taken from the sample. No interval depends on
the order of trajectories, on how they are cut into files, or on threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from offpolicy._util import scalars
from offpolicy.errors import TooLargeError
from offpolicy.errors.hints import suggestion
from offpolicy.errors.kinds.of_arguments import bad_value, unknown_name
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

__all__ = ["CHOICES", "METHODS", "SIDES", "Interval", "Method", "Request", "check", "interval"]


#: Kinds with a guarantee for finite samples.
PROMISES = ("finite-sample", "anytime")
#: Methods that are valid if only clusters of episodes are independent.
BY_CLUSTER = ("normal", "t", "bootstrap", "bootstrap-bca")


@dataclass(frozen=True)
class Method:
    """A method: its kind, the function that finds the ends, and the conditions under which it is valid."""

    kind: str
    ends: Callable[[Request], Ends]
    needs_means: bool = False  # valid for means over trajectories, not for ratios of sums
    needs_weights: bool = False
    only: str | None = None  # the only side that it bounds

    def check(self, request: Request) -> None:
        """Refuse a side or an estimator for which the method is not valid."""
        method, estimator, about = request.method, request.estimator, describe(request.estimator)
        if self.only not in (None, request.side):
            raise WithheldError(f'{method} bounds a value from below only: ask for side="{self.only}"')
        if request.samples.clusters is not None and method not in BY_CLUSTER:
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
        if self.needs_weights and not about.uses_weights:
            raise WithheldError(f"{method} is about weights, and {estimator} has none: ask for t")


METHODS = {
    "normal": Method("asymptotic", normal.normal),
    "t": Method("asymptotic", normal.student),
    "t-skew": Method("asymptotic", skewed.ends),
    "hoeffding": Method("finite-sample", hoeffding.ends, needs_means=True),
    "bernstein": Method("finite-sample", bernstein.ends, needs_means=True),
    "betting": Method("finite-sample", betting.ends, needs_means=True),
    "sequence": Method("anytime", sequence.ends, needs_means=True),
    "hcope": Method("finite-sample", hcope.ends, needs_means=True, only="lower"),
    "anderson": Method("finite-sample", anderson.ends, needs_means=True),
    "likelihood": Method("asymptotic", likelihood.ends, needs_means=True, needs_weights=True),
    "bootstrap": Method("heuristic", bootstrap.percentile),
    "bootstrap-bca": Method("heuristic", bootstrap.bca),
}

#: The names that a user may give as a method.
CHOICES = (*METHODS, auto.AUTO)


def check(method: str, confidence: float, side: str = "two") -> None:
    """Refuse an unknown method or side, and a level outside (0, 1)."""
    if not isinstance(method, str) or method not in CHOICES:
        hint = f"{suggestion(str(method), CHOICES) or ';'} there are {', '.join(CHOICES)}"
        raise unknown_name(lack="no interval", name=scalars.shown(method), hint=hint)
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
    method = METHODS[request.method]
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
