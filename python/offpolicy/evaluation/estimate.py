"""One estimate, and its intervals."""

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
    """How intervals are made unless asked otherwise."""

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
    #: Of `magic`: the share of what follows the log for so many steps and then the model, by that number of steps.
    blend: dict[int, float] | None = None
    #: The least and the largest value of a trajectory, of an estimate that is their mean.
    extremes: Range | None = None
    #: Degrees of freedom of the standard error, where they are not one less than the episodes.
    degrees: int | None = None
    #: With clusters, the share of the largest one in the variance.
    cluster_share: float | None = None

    @property
    def clusters(self) -> int | None:
        """How many clusters the episodes come in; None where they are taken as independent."""
        return None if self.samples.clusters is None else self.samples.clusters.count

    @property
    def key(self) -> tuple[str, str]:
        """Its policy and its estimator."""
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
        """A confidence interval, by default the one of the evaluation; `side="lower"` or `"upper"` is a bound alone.

        Methods that are made of single trajectories read the log once more, the first time. `replicates` and `seed` are
        those of the bootstrap. `method="auto"` takes the one that fits, see `offpolicy.intervals.auto`.

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
        """The state of `betting`, `sequence`, `hcope` and `anderson`, which merges with those of other logs.

        That of `side="upper"` has the opposites of the values. With a bound on ratios `betting` and `sequence` use a
        second state of `step-is` and `is`, `by="ratios"`, where the bound on the reward of that side is not 0.

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
        """The interval of the evaluation, made when it is first asked for."""
        return self.interval()

    @property
    def reason(self) -> str | None:
        """Why a number is missing, or what to know about the interval."""
        return self.own_interval.reason

    @property
    def low(self) -> float | None:
        """Lower end of the evaluation's interval."""
        return self.own_interval.low

    @property
    def high(self) -> float | None:
        """Upper end of the evaluation's interval."""
        return self.own_interval.high
