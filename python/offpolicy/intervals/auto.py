"""The choice of a method by `interval="auto"`: the narrowest kind whose assumptions hold.

    1. `t`        if the effective sample size is 1000 or more, so that the skewness of single values hardly matters;
                  also if episodes come in clusters or π0 was estimated, for which the other methods are not valid
    2. `betting`  if the effective sample size is below 30, too few for any limit law, and bounds= were given
    3. `t-skew`   otherwise, since it corrects for the skewness and tails of few trajectories
    4. `betting`  if none of these can be had, as for a single trajectory, and bounds= were given
    5. `t`        for differences of weighted estimators, for which no other method is available

The first method that is not withheld is taken, and `assumptions["chosen"]` says why. The effective sample size of an
estimator without weights is n. The choice looks at nothing else: to make several intervals and take the narrowest would
miss the truth more often than each of them does. Since the weights decide and are part of the values too, the guarantee
of `betting` takes this form: in at most δ of all logs it is taken and wrong. docs/results/intervals compares how often
the choice and `t` hold the truth.

`likelihood` is narrower still and is never taken: it falls short even in the largest samples that were measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from offpolicy.intervals.leave_one_out import MANY
from offpolicy.intervals.request import Request
from offpolicy.intervals.result import Interval

AUTO = "auto"
#: Effective sample size below which bounds for finite samples are taken; `t` is taken from `MANY` on.
FEW = 30


def ladder(request: Request) -> Iterator[tuple[str, str]]:
    """Yield the methods in the order in which they are tried, each with the reason for it."""
    size = request.episodes if request.ess is None else request.ess
    seen = f"the effective sample size is {size:,.0f}"
    if request.samples.clusters is not None:
        yield "t", "only clusters of episodes are independent, and t knows their error"
    elif request.degrees is not None:
        yield "t", "π0 was estimated, and t knows what that does to the error"
    elif size >= MANY:
        yield "t", f"{seen}, {MANY} or more, enough for the t interval"
    elif size < FEW and request.bounds is not None:
        yield "betting", f"{seen}, below {FEW}, too few for a limit law, and bounds= allow a bound for finite samples"
    else:
        yield "t-skew", f"{seen}, below {MANY}, so few that skewness and heavy tails are corrected for"
    yield "t-skew", f"{seen}, and no other interval can be had"
    if request.bounds is not None:
        yield "betting", "no limit law can be had, and bounds= allow a bound for finite samples"
    yield "t", "no other interval can be had"


def take(request: Request, make: Callable[[str], Interval]) -> Interval:
    """Return the first interval of the ladder that is not withheld, or else the first one with its reason."""
    first, tried = None, set()
    for method, why in ladder(request):
        if method in tried:
            continue
        tried.add(method)
        found = make(method)
        if (found.low, found.high) != (None, None):
            return replace(found, assumptions=found.assumptions | {"chosen": f"{method}: {why}"})
        first = first or found
    assert first is not None  # a ladder is never empty
    return first
