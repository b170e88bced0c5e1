"""Where intervals are known to fall short: measured coverage by the effective sample size of the log.

Percent of 95% intervals, and of 95% bounds from one side, that held the truth in docs/intervals/small-samples.md, which
`python benches/measure_small_samples.py` makes; a column for each range of effective sample sizes that begins with one
of `SIZES`. `averages` are `is`, `step-is` and `dr`, and stand for `dr-bsl` and `dr-v2`; `weighted` are `wis`,
`step-wis` and `wdr`. `t, influence` is a `t` interval of a weighted estimator without its correction for small samples.
"""

from __future__ import annotations

from itertools import pairwise

from offpolicy.estimators import UNWEIGHTED, WEIGHTED
from offpolicy.intervals.request import Ends, Request

SIZES = (0, 10, 30, 100, 300, 1000)
#: Percent below the level that go without a word.
ALLOWED, LEVEL = 2, 95
WHERE = "docs/intervals/small-samples.md"
NAMES = {"two": "intervals", "lower": "lower bounds", "upper": "upper bounds"}

COVERAGE: dict[tuple[str, str, str], tuple[int, ...]] = {
    ("normal", "averages", "two"): (87, 85, 87, 90, 94, 95),
    ("normal", "averages", "upper"): (88, 83, 86, 88, 93, 94),
    ("normal", "weighted", "two"): (78, 86, 88, 90, 94, 95),
    ("normal", "weighted", "lower"): (85, 93, 95, 95, 95, 95),
    ("normal", "weighted", "upper"): (87, 87, 87, 89, 94, 94),
    ("t, influence", "weighted", "two"): (80, 87, 89, 90, 94, 95),
    ("t, influence", "weighted", "lower"): (86, 94, 95, 95, 95, 95),
    ("t, influence", "weighted", "upper"): (87, 87, 88, 89, 94, 94),
    ("t", "averages", "two"): (88, 86, 88, 90, 94, 95),
    ("t", "averages", "upper"): (88, 84, 86, 88, 93, 94),
    ("t", "weighted", "two"): (94, 91, 91, 92, 94, 95),
    ("t", "weighted", "upper"): (95, 91, 89, 90, 94, 94),
    ("t-skew", "averages", "two"): (92, 93, 93, 93, 94, 96),
    ("t-skew", "averages", "upper"): (92, 91, 90, 91, 94, 95),
    ("t-skew", "weighted", "two"): (92, 94, 95, 94, 95, 96),
    ("likelihood", "averages", "two"): (71, 79, 83, 86, 91, 92),
    ("likelihood", "averages", "lower"): (83, 85, 88, 89, 92, 92),
    ("likelihood", "averages", "upper"): (83, 89, 90, 92, 94, 95),
    ("bootstrap", "averages", "two"): (85, 85, 88, 91, 94),
    ("bootstrap", "averages", "upper"): (87, 83, 86, 90, 93),
    ("bootstrap", "weighted", "two"): (88, 83, 87, 90, 93),
    ("bootstrap", "weighted", "upper"): (90, 83, 86, 90, 93),
    ("bootstrap-bca", "averages", "two"): (84, 87, 89, 92, 94),
    ("bootstrap-bca", "averages", "lower"): (91, 95, 96, 95, 95),
    ("bootstrap-bca", "averages", "upper"): (87, 86, 88, 91, 94),
    ("bootstrap-bca", "weighted", "two"): (87, 88, 89, 91, 94),
    ("bootstrap-bca", "weighted", "lower"): (91, 94, 95, 95, 95),
    ("bootstrap-bca", "weighted", "upper"): (90, 87, 88, 91, 94),
}


def caution(request: Request, ends: Ends) -> str | None:
    """Return a sentence with the measured coverage where it is more than 2 points short, or None."""
    if request.ess is None or request.estimator in UNWEIGHTED:
        return None
    weighted, method = request.estimator in WEIGHTED, request.method
    if method == "t" and weighted and "factor" not in ends.assumptions:
        method = "t, influence"
    group = "weighted" if weighted else "averages"
    row = COVERAGE.get((method, group, request.side), ())
    for (least, most), covered in zip(pairwise((*SIZES, None)), row, strict=False):
        if request.ess >= (least or 0) and (most is None or request.ess < most):
            if covered >= LEVEL - ALLOWED:
                return None
            return (
                f"{covered}% of {LEVEL}% {request.method} {NAMES[request.side]} held the truth in measured logs with "
                f"an effective sample size {_named(least or 0, most)} ({WHERE})"
            )
    return None


def _named(least: int, most: int | None) -> str:
    if most is None:
        return f"of {least} or more"
    return f"of {least} to {most}" if least else f"below {most}"
