"""One estimate with its standard error and its intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from offpolicy import intervals
from offpolicy._util import scalars
from offpolicy.evaluation.bounds import Bounds, Range, Terms
from offpolicy.intervals import Interval
from offpolicy.intervals.nonnegative import sketch_of
from offpolicy.intervals.request import REPLICATES, Request
from offpolicy.intervals.sketch import Sketch
from offpolicy.logs.trajectories import Samples


@dataclass(frozen=True)
class IntervalSettings:
    """The confidence level, method and bounds of every interval that is asked for without them."""

    confidence: float
    method: str
    bounds: Bounds | None


@dataclass(frozen=True)
class Estimate:
    """One estimator's value of one policy, with its standard error.

    >>> import offpolicy as op
    >>> estimate = op.evaluate(op.demo_log(), discount=0.9)["dr"]
    >>> estimate.low < estimate.value < estimate.high
    True
    >>> shares = op.evaluate(op.demo_log(), discount=0.9)["magic"].blend
    >>> min(shares), max(shares), round(sum(shares.values()), 9)
    (0, 10, 1.0)
    """

    policy: str
    estimator: str
    value: float | None
    std_error: float | None
    episodes: int
    steps: int
    ess: float
    terms: Terms
    settings: IntervalSettings
    samples: Samples = field(repr=False, compare=False)
    withheld: str | None = None
    #: The shares that `magic` gives to following the log for 0, 1, 2, … steps and then the model, by number of steps.
    blend: dict[int, float] | None = None
    #: The least and the largest value of a trajectory, where the estimate is the mean of such values.
    extremes: Range | None = None
    #: Degrees of freedom of the standard error; None for the number of episodes less one.
    degrees: int | None = None
    #: The share of the variance that comes from one cluster, the largest; None without clusters.
    cluster_share: float | None = None

    @property
    def clusters(self) -> int | None:
        """Return the number of clusters that the episodes come in, or None where they are taken as independent."""
        return None if self.samples.clusters is None else self.samples.clusters.count

    @property
    def key(self) -> tuple[str, str]:
        """Return the policy and the estimator, which together identify the estimate."""
        return self.policy, self.estimator

    def interval(
        self,
        confidence: float | None = None,
        method: str | None = None,
        bounds: Bounds | None = None,
        side: str = "two",
        *,
        replicates: int = REPLICATES,
        seed: int = 0,
    ) -> Interval:
        """Return a confidence interval, by default with the settings of the evaluation.

        `side="lower"` or `side="upper"` gives a one-sided bound. Methods that use the values of single trajectories
        read the log once more when they are first asked for. `replicates` and `seed` belong to the bootstrap.
        `method="auto"` chooses a method that fits the estimate, by the rules of `offpolicy.intervals.auto`.

        >>> import offpolicy as op
        >>> estimate = op.evaluate(op.demo_log(), discount=0.9)["step-is"]
        >>> narrow, wide = estimate.interval(confidence=0.5), estimate.interval(confidence=0.99)
        >>> wide.low < narrow.low < narrow.high < wide.high
        True
        """
        request = self._request(
            method, confidence, bounds, side, replicates=replicates, seed=scalars.whole("seed", seed)
        )
        none = "the estimate has no value" if self.value is None else None
        return intervals.interval(request, self.withheld or none)

    def sketch(self, bounds: Bounds | None = None, side: str = "lower", by: str = "rewards") -> Sketch:
        """Return the sketch that `betting`, `sequence`, `hcope` and `anderson` use; sketches of several logs merge.

        With `side="upper"` the sketch holds the negated values. Where ratios are bounded, and the bound on rewards on
        that side is not 0, `betting` and `sequence` use a second sketch of `step-is` and `is`, made by `by="ratios"`.

        >>> import offpolicy as op
        >>> from offpolicy.intervals import betting
        >>> bounds = op.Bounds(reward=(0, 1))
        >>> ev = op.evaluate(op.demo_log(), discount=0.9, horizon=10, estimators=["step-is"])
        >>> sketch = ev["step-is"].sketch(bounds)
        >>> low = ev["step-is"].interval(0.95, "betting", bounds, side="lower").low
        >>> low == sketch.floor + betting.lower(sketch, delta=1 - 0.95)
        True
        >>> bounds = op.Bounds(reward=(0, 1), ratio=1.6)
        >>> first, second = (ev["step-is"].sketch(bounds, side="upper", by=by) for by in ("rewards", "ratios"))
        >>> high = ev["step-is"].interval(0.95, "betting", bounds, side="upper").high
        >>> high == -(first.floor + betting.lower(first, 1 - 0.95, second))
        True
        """
        for name, word, words in (("side", side, ("lower", "upper")), ("by", by, ("rewards", "ratios"))):
            scalars.choice(name, word, words)
        request = self._request("betting", None, bounds, side)
        intervals.METHODS[request.method].check(request)
        return sketch_of(request, side, by)

    def _request(
        self, method: str | None, confidence: float | None, bounds: Bounds | None, side: str, **options: Any
    ) -> Request:
        if bounds is not None:
            scalars.instance("bounds", bounds, Bounds, "Bounds(reward=(lowest, highest), ...)")
        return Request(
            method=self.settings.method if method is None else method,
            policy=self.policy,
            estimator=self.estimator,
            value=math.nan if self.value is None else self.value,
            std_error=self.std_error,
            episodes=self.episodes,
            terms=self.terms,
            samples=self.samples,
            confidence=self.settings.confidence if confidence is None else confidence,
            side=side,
            bounds=self.settings.bounds if bounds is None else bounds,
            extremes=self.extremes,
            degrees=self.degrees,
            ess=self.ess,
            **options,
        )

    @cached_property
    def own_interval(self) -> Interval:
        """Return the interval with the settings of the evaluation, made when it is first asked for."""
        return self.interval()

    @property
    def reason(self) -> str | None:
        """Return why a number is missing, or what to know about the interval."""
        return self.own_interval.reason

    @property
    def low(self) -> float | None:
        """Return the lower end of the evaluation's interval."""
        return self.own_interval.low

    @property
    def high(self) -> float | None:
        """Return the upper end of the evaluation's interval."""
        return self.own_interval.high
