"""What an interval is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SIDES = ("two", "lower", "upper")


@dataclass(frozen=True)
class Interval:
    """A confidence interval, or a bound from one side; where it was withheld no end is there, and `reason` says why.

    `caution` says how often such intervals were measured to hold the truth, where that is less than they say.

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
