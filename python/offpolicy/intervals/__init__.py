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
from difflib import get_close_matches

import numpy as np

from offpolicy._util import scalars
from offpolicy.errors import TooLargeError, UsageError
from offpolicy.evaluation.estimators import BLENDED, TRUSTING, UNWEIGHTED, WEIGHTED
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
    refuses: frozenset[str] = frozenset()
    only: str | None = None  # the one side that it bounds

    def check(self, request: Request) -> None:
        """Refuses a side or an estimator for which the method is not valid."""
        method, estimator = request.method, request.estimator
        if self.only not in (None, request.side):
            raise WithheldError(f'{method} bounds a value from below only: ask for side="{self.only}"')
        if request.samples.clusters is not None and method not in BY_CLUSTER:
            raise WithheldError(
                f"{method} needs independent episodes, and episodes of one cluster are not independent: ask for t"
            )
        if estimator in BLENDED:
            raise WithheldError(
                f"the standard error of {estimator} is that of its blend, without the bias of the model in it: no "
                "interval follows; wdr has one"
            )
        if self.kind in PROMISES and (
            estimator == "reg" or (estimator in TRUSTING and not request.terms.transition_ratio)
        ):
            raise WithheldError(
                f"{method} would bound the mean of {estimator}, the value only if its model is right: ask for t"
            )
        if estimator not in self.refuses:
            return
        if estimator in WEIGHTED:
            raise WithheldError(f"{method} holds for means of independent values; {estimator} is a ratio of sums")
        raise WithheldError(f"{method} is about weights, and {estimator} has none: ask for t")


METHODS = {
    "normal": Method("asymptotic", normal.normal),
    "t": Method("asymptotic", normal.student),
    "t-skew": Method("asymptotic", skewed.ends),
    "hoeffding": Method("finite-sample", hoeffding.ends, WEIGHTED),
    "bernstein": Method("finite-sample", bernstein.ends, WEIGHTED),
    "betting": Method("finite-sample", betting.ends, WEIGHTED),
    "sequence": Method("anytime", sequence.ends, WEIGHTED),
    "hcope": Method("finite-sample", hcope.ends, WEIGHTED, only="lower"),
    "anderson": Method("finite-sample", anderson.ends, WEIGHTED),
    "likelihood": Method("asymptotic", likelihood.ends, WEIGHTED | UNWEIGHTED),
    "bootstrap": Method("heuristic", bootstrap.percentile),
    "bootstrap-bca": Method("heuristic", bootstrap.bca),
}

#: What may be asked for.
CHOICES = (*METHODS, auto.AUTO)


def check(method: str, confidence: float, side: str = "two") -> None:
    """Refuses an unknown method or side, and a level outside (0, 1)."""
    if not isinstance(method, str) or method not in CHOICES:
        close = get_close_matches(str(method), CHOICES, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise UsageError(f"no interval {scalars.shown(method)}; {hint}there are {', '.join(CHOICES)}")
    scalars.choice("side", side, SIDES)
    if not (scalars.is_number(confidence) and 0 < confidence < 1 and 0.5 + confidence / 2 < 1):
        raise UsageError(f"confidence must be between 0 and 1, not {scalars.shown(confidence)}")


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
        return replace(found, reason=str(why))
    clusters = request.samples.clusters
    assumptions = ends.assumptions | ({} if clusters is None else {"clusters": clusters.count})
    reason, caution = request.vacuous(ends.low, ends.high), shortfalls.caution(request, ends)
    return replace(found, low=ends.low, high=ends.high, assumptions=assumptions, reason=reason, caution=caution)
