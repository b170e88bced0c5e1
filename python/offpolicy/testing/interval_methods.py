"""The conformance suite for confidence intervals of plugins."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from offpolicy import intervals
from offpolicy.evaluation.bounds import Bounds
from offpolicy.evaluation.estimate import Estimate
from offpolicy.evaluation.evaluate import evaluate
from offpolicy.intervals import Interval, Method, Request
from offpolicy.intervals.result import SIDES
from offpolicy.testing.enumeration import DISCOUNT, HIGHEST, HORIZON, LOWEST, PI0, PI1, enumeration
from offpolicy.testing.faults import Faults

#: Levels that are asked for, in rising order, and the one whose coverage is measured.
LEVELS, MEASURED = (0.5, 0.8, 0.9, 0.95, 0.99), 0.9
#: How much less than their level intervals may cover, by what they promise, beside three standard deviations.
SHORT = {"finite-sample": 0.0, "anytime": 0.0, "asymptotic": 0.03, "heuristic": 0.1}
BOUNDS = Bounds(reward=(LOWEST, HIGHEST), ratio=max(PI1[s][a] / PI0[s][a] for s in (0, 1) for a in (0, 1)))


def check_interval(method: Any, logs: int = 400, episodes: int = 200, seed: int = 0) -> None:
    """Raise a `ConformanceError` with everything that breaks the protocol of an interval; return None if nothing does.

    Draws so many logs from a tiny MDP whose value is known, evaluates `step-is` on each with bounds on rewards and
    ratios, and counts how often the interval holds the truth. One that promises something for finite samples must keep
    it; one that is asymptotic may fall a little short, and a heuristic one a little more.

    >>> from offpolicy.intervals import METHODS
    >>> from offpolicy.testing import check_interval
    >>> check_interval(METHODS["t"])
    """
    faults = Faults(f"interval {getattr(method, '__name__', type(method).__name__)}")
    if faults.expect(
        isinstance(method, Method),
        "method",
        f"a {type(method).__name__} is no offpolicy.intervals.Method",
        "an interval is a Method(kind, ends)",
        "give what the hook's maker returns",
    ):
        with faults.calling("ends", "the interval of step-is"):
            checked = intervals.of_plugin("under-test", "under test", method)
            drawn = list(_drawn(logs, episodes, seed))
            if _has_ends(faults, checked, drawn[0]):
                _is_monotone(faults, checked, drawn[0])
                _is_repeatable(faults, checked, episodes, seed)
                _covers(faults, checked, drawn)
    faults.raise_any()


def _drawn(logs: int, episodes: int, seed: int) -> Iterator[Estimate]:
    """Yield the estimates of logs that are drawn with the probabilities of their trajectories."""
    every, rng = enumeration(), np.random.default_rng(seed)
    for _ in range(logs):
        yield _estimate(rng.choice(len(every.lengths), episodes, p=every.probabilities))


def _estimate(chosen: Any, ids: Any = None) -> Estimate:
    log = enumeration().log(chosen, ids)
    log = log.select("episode", "step", "reward", "behavior_prob", "target_prob")
    ev = evaluate(
        log, discount=DISCOUNT, horizon=HORIZON, estimators=["step-is"], diagnostics=False, threads=1, bounds=BOUNDS
    )
    return ev["step-is"]


def _interval(method: Method, estimate: Estimate, confidence: float, side: str = "two") -> Interval:
    assert estimate.value is not None
    request = Request(
        method="under-test",
        policy=estimate.policy,
        estimator=estimate.estimator,
        value=estimate.value,
        std_error=estimate.std_error,
        episodes=estimate.episodes,
        terms=estimate.terms,
        samples=estimate.samples,
        confidence=confidence,
        side=side,
        bounds=BOUNDS,
        extremes=estimate.extremes,
        ess=estimate.ess,
    )
    return intervals.made_by(method, request)


def _has_ends(faults: Faults, method: Method, estimate: Estimate) -> bool:
    found = [_interval(method, estimate, MEASURED, side) for side in _sides(method)]
    reasons = [each.reason for each in found if (each.low, each.high) == (None, None)]
    return faults.expect(
        not reasons,
        "withheld",
        f"there is no interval of step-is with bounds on rewards and ratios: {reasons[0] if reasons else ''}",
        "an interval can be had of a plain mean whose range is known",
        "withhold an interval only where its assumptions fail",
    )


def _sides(method: Method) -> tuple[str, ...]:
    return SIDES if method.only is None else (method.only,)


def _is_monotone(faults: Faults, method: Method, estimate: Estimate) -> None:
    for side in _sides(method):
        found = [_interval(method, estimate, level, side) for level in LEVELS]
        for narrow, wide in pairwise(found):
            outer, inner = _ends(wide), _ends(narrow)
            faults.expect(
                outer[0] <= inner[0] and inner[1] <= outer[1],
                "monotone",
                f"the interval of level {wide.confidence:g} does not hold that of level {narrow.confidence:g}",
                "a higher confidence gives no narrower interval",
                "use request.tail or request.quantile, which know of the level and the side",
            )
    if method.only is None:
        two = _ends(_interval(method, estimate, MEASURED))
        low, high = (_ends(_interval(method, estimate, MEASURED, side)) for side in ("lower", "upper"))
        faults.expect(
            two[0] <= low[0] and high[1] <= two[1],
            "sides",
            "a bound from one side is further away than the end of the interval from both sides",
            "a bound from one side may miss with all of δ, and each end of an interval with a part of it",
            "use request.tail or request.quantile, which know of the level and the side",
        )


def _ends(found: Interval) -> tuple[float, float]:
    return (-math.inf if found.low is None else found.low), (math.inf if found.high is None else found.high)


def _is_repeatable(faults: Faults, method: Method, episodes: int, seed: int) -> None:
    every, ids = enumeration(), np.arange(episodes)
    chosen = np.random.default_rng(seed).choice(len(every.lengths), episodes, p=every.probabilities)
    estimates = [_estimate(chosen, ids), _estimate(chosen, ids), _estimate(chosen[::-1], ids[::-1])]
    first, again, turned = (_ends(_interval(method, each, MEASURED)) for each in estimates)
    for other, rule, how in ((again, "repeat", "of the same log again"), (turned, "order", "of the log turned round")):
        faults.expect(
            other == first,
            rule,
            f"the interval {how} is {other}, and was {first}",
            "the same trajectories give the same bits, whatever their order",
            "fix the seed of what is random, and sum by offpolicy.folds.hash_of or math.fsum",
        )


def _covers(faults: Faults, method: Method, drawn: list[Estimate]) -> None:
    value = enumeration().value
    for side in _sides(method):
        found = [_ends(_interval(method, estimate, MEASURED, side)) for estimate in drawn]
        held = sum(low <= value <= high for low, high in found) / len(drawn)
        least = MEASURED - SHORT[method.kind] - 3 * math.sqrt(MEASURED * (1 - MEASURED) / len(drawn))
        faults.expect(
            held >= least,
            "coverage",
            f"{held:.0%} of {len(drawn)} {method.kind} intervals of level {MEASURED:.0%}, {side}-sided, held the truth",
            "an interval holds the truth as often as its kind promises",
            "derive the ends again, or call the kind heuristic",
        )
