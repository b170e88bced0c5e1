"""The interval that users get."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SIDES = ("two", "lower", "upper")


@dataclass(frozen=True)
class Interval:
    """A confidence interval or a one-sided bound. If it was withheld, it has no ends and `reason` says why.

    If such intervals were measured to hold the truth less often than their level says, `caution` says how often.

    >>> import offpolicy as op
    >>> estimate = op.evaluate(op.demo_log(), discount=0.9)["dr"]
    >>> interval = estimate.interval(confidence=0.9, method="normal")
    >>> interval.kind, interval.low < op.demo_value() < interval.high
    ('asymptotic', True)
    >>> bound = estimate.interval(confidence=0.95, method="normal", side="lower")
    >>> bound.low == interval.low, bound.high
    (True, None)
    """

    low: float | None
    high: float | None
    method: str
    kind: str
    confidence: float
    assumptions: dict[str, Any] = field(default_factory=dict)
    reason: str | None = None
    side: str = "two"
    caution: str | None = None
