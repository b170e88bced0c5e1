"""Measured coverage of intervals by effective sample size, for a caution where intervals are known to fall short.

`COVERAGE` has the percentage of 95% intervals and 95% one-sided bounds that held the truth in
docs/results/intervals/small-samples.md, which `python tools/measure_small_samples.py` makes. There is one column per
range of effective sample sizes, which begins with one of `SIZES`. `averages` was measured on `is`, `step-is` and `dr`
and is used for `dr-bsl` and `dr-v2` too; `weighted` was measured on `wis`, `step-wis` and `wdr`. `t, influence` is a
`t` interval of a weighted estimator without its correction for small samples.
"""

from __future__ import annotations

from itertools import pairwise

from offpolicy.evaluation.estimators import describe, from_plugin
from offpolicy.intervals.request import Ends, Request

SIZES = (0, 10, 30, 100, 300, 1000)
#: The shortfall in percentage points that needs no caution, and the level of the measured intervals.
ALLOWED, LEVEL = 2, 95
WHERE = "docs/results/intervals/small-samples.md"
#: Weights count as nearly equal, unlike those measured, if the effective sample size is this share of the episodes.
NEARLY_EQUAL = 0.9
NAMES = {"two": "intervals", "lower": "lower bounds", "upper": "upper bounds"}

COVERAGE: dict[tuple[str, str, str], tuple[int, ...]] = {
    ("normal", "averages", "two"): (82, 82, 85, 89, 92, 94),
    ("normal", "averages", "upper"): (82, 81, 83, 88, 91, 93),
    ("normal", "weighted", "two"): (75, 85, 88, 91, 94, 94),
    ("normal", "weighted", "lower"): (86, 94, 95, 95, 96, 96),
    ("normal", "weighted", "upper"): (83, 86, 87, 90, 93, 93),
    ("t, influence", "weighted", "two"): (77, 86, 88, 91, 94, 94),
    ("t, influence", "weighted", "lower"): (87, 94, 96, 95, 96, 96),
    ("t, influence", "weighted", "upper"): (83, 86, 87, 90, 93, 93),
    ("t", "averages", "two"): (83, 83, 85, 89, 92, 94),
    ("t", "averages", "upper"): (83, 81, 83, 88, 91, 93),
    ("t", "weighted", "two"): (93, 90, 91, 92, 94, 94),
    ("t", "weighted", "upper"): (93, 90, 89, 91, 94, 93),
    ("t-skew", "averages", "two"): (91, 92, 92, 93, 94, 95),
    ("t-skew", "averages", "upper"): (90, 90, 89, 91, 93, 94),
    ("likelihood", "averages", "two"): (67, 78, 84, 89, 93, 94),
    ("likelihood", "averages", "lower"): (80, 85, 89, 91, 93, 95),
    ("likelihood", "averages", "upper"): (82, 88, 90, 93, 94, 94),
    ("bootstrap", "averages", "two"): (81, 83, 86, 90, 93),
    ("bootstrap", "averages", "upper"): (81, 81, 84, 89, 91),
    ("bootstrap", "weighted", "two"): (86, 84, 88, 91, 94),
    ("bootstrap", "weighted", "upper"): (86, 84, 86, 90, 93),
    ("bootstrap-bca", "averages", "two"): (80, 84, 87, 91, 93),
    ("bootstrap-bca", "averages", "upper"): (83, 84, 86, 90, 93),
    ("bootstrap-bca", "weighted", "two"): (84, 87, 90, 91, 94),
    ("bootstrap-bca", "weighted", "lower"): (91, 94, 95, 95, 95),
    ("bootstrap-bca", "weighted", "upper"): (86, 86, 88, 91, 94),
}


def caution(request: Request, ends: Ends) -> str | None:
    """Return a sentence with the measured coverage if it is more than 2 points short, otherwise None.

    The measured problems have unequal weights. Errors by cluster, for an estimated π0, of differences and of estimators
    of plugins were not measured and get no caution.
    """
    about = describe(request.estimator)
    if (
        from_plugin(request.estimator) is not None
        or request.ess is None
        or not about.uses_weights
        or not request.own_error
    ):
        return None
    if request.ess >= NEARLY_EQUAL * request.episodes:
        return None
    weighted, method = about.weighted, request.method
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
