"""Confidence intervals: each with its kind, what it assumed, and a reason where it cannot be had; a method a file.

    method         kind           state that it is made of             refuses
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

All refuse `magic`, whose value leans on a model: its error is more than its spread (docs/results/magic has by how
much). Those for finite samples refuse `reg`, and `dr-v2` where P̂/P is not known: with a wrong model their mean is not
the value. The others learn the error from the spread of the sample, and are withheld where it has none (see
`rounding`). `auto` takes one of them, see `auto`. An interval says in `caution` where it is known to fall short, see
`shortfalls`. A two-sided interval of level 1 − δ misses on each side with δ/2; a bound from one side has all of δ.
Bounds on rewards, ratios and models are given, never seen. Whatever the state is, it does not depend on the order of
trajectories, on how they are cut into files, or on threads; nor does an interval.
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


#: Kinds that promise something for finite samples.
PROMISES = ("finite-sample", "anytime")
#: Methods that hold where only clusters of episodes are independent.
BY_CLUSTER = ("normal", "t", "bootstrap", "bootstrap-bca")


@dataclass(frozen=True)
class Method:
    """How ends are found, what kind of promise they make, and for which estimators they make none."""

    kind: str
    ends: Callable[[Request], Ends]
    needs_means: bool = False  # holds for means of values of trajectories, and for no ratio of sums
    needs_weights: bool = False
    only: str | None = None  # the one side that it bounds

    def check(self, request: Request) -> None:
        """Refuses a side or an estimator for which the method is not valid."""
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

#: What may be asked for.
CHOICES = (*METHODS, auto.AUTO)


def check(method: str, confidence: float, side: str = "two") -> None:
    """Refuses an unknown method or side, and a level outside (0, 1)."""
    if not isinstance(method, str) or method not in CHOICES:
        hint = f"{suggestion(str(method), CHOICES) or ';'} there are {', '.join(CHOICES)}"
        raise unknown_name(lack="no interval", name=scalars.shown(method), hint=hint)
    scalars.choice("side", side, SIDES)
    if not (scalars.is_number(confidence) and 0 < confidence < 1 and 0.5 + confidence / 2 < 1):
        raise bad_value(name="confidence", expected="between 0 and 1", found=scalars.shown(confidence))


def interval(request: Request, withheld: str | None = None) -> Interval:
    """The interval of an estimate, or the reason why there is none; `withheld` is one that is known beforehand."""
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
