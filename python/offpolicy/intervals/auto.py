"""The interval that fits, `interval="auto"`: the narrowest kind whose assumptions hold, by rules that look at no value.

    1. `t`        the effective sample size is 1000 or more: a sum of so many hardly remembers the skewness of one; or
                  episodes come in clusters, or π0 was estimated, for which the others below do not hold
    2. `betting`  the effective sample size is below 30, too few for any limit law, and bounds= were given that allow it
    3. `t-skew`   otherwise: few trajectories, whose skewness and tails it corrects for
    4. `betting`  where none of these can be had, as of a single trajectory, and bounds= allow it
    5. `t`        of differences of weighted estimators, which have nothing else

The first that is not withheld is taken; `assumptions["chosen"]` says why. The effective sample size of an estimator
without weights is n. Nothing else of the log is looked at: to make several intervals and take the narrowest would miss
the truth more often than each of them does. The choice is made by the weights, which are in the values too, so that
`betting` keeps its promise in this form: it is taken and wrong in at most δ of all logs. docs/results/intervals has how
often the choice holds the truth, beside `t`.

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
    """Methods in the order in which they are tried, each with the reason for it."""
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
    """Return the first interval of the ladder that has an end, or the first with its reason."""
    first, tried = None, set()
    for method, why in ladder(request):
        if method in tried:
            continue
        tried.add(method)
        found = make(method)
        if (found.low, found.high) != (None, None):
            return replace(found, assumptions=found.assumptions | {"chosen": f"{method}: {why}"})
        first = first or found
    assert first is not None  # a ladder has rungs
    return first
