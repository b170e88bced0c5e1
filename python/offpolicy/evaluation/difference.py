"""The difference of a policy's value from that of the logged policy, on the same trajectories.

    Δ = θ − Ḡ,    SE² = Σ (d_i − d̄)² / (n (n − 1)),    d_i = ψ_i − G_i

where ψ_i is the value of trajectory i, or its influence value for a weighted estimator, and G_i is its return. What
moves the estimate and the mean return alike cancels in d_i, so that SE is often far smaller than the error of either.

Where π0 was estimated, the error that the estimation adds to θ does not cancel. Then SE is the sum of the standard
error of θ, which accounts for the estimation (`offpolicy.evaluation.std_errors`), and that of Ḡ. No difference has a
larger error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from offpolicy import intervals
from offpolicy._util import words
from offpolicy._util.phrase import phrase
from offpolicy.evaluation.bounds import Bounds, Range, Terms
from offpolicy.evaluation.estimate import Estimate
from offpolicy.evaluation.estimators import describe
from offpolicy.evaluation.outcome import FoundDifference
from offpolicy.intervals import Interval
from offpolicy.intervals.paired import PairedRequest, PairedSamples
from offpolicy.intervals.request import REPLICATES
from offpolicy.intervals.sketch import SLACK


@dataclass(frozen=True)
class Difference:
    """The gain of a policy over another, with a standard error from values that are paired by trajectory.

    `withheld` is the reason why there is no interval, or None if there is one.

    >>> import offpolicy as op
    >>> ev = op.evaluate(op.demo_log(), discount=0.9, paired=True)
    >>> gain = ev.difference("target", "behavior", estimator="dr")
    >>> abs(gain.value - (ev["dr"].value - ev["mc"].value)) < 1e-12
    True
    """

    policy: str
    against: str
    estimator: str
    value: float | None
    std_error: float | None
    episodes: int
    estimate: Estimate = field(repr=False)
    extremes: Range | None = None
    withheld: str | None = None

    @classmethod
    def of(
        cls, estimate: Estimate, against: str, found: FoundDifference | None, other_error: float | None
    ) -> Difference:
        """Return the difference that the core found, set to 0 if only rounding makes it different from 0.

        That is so for a policy that equals the logged one. `other_error` is the standard error of the mean return.
        """
        about = (estimate.policy, against, estimate.estimator)
        if found is None:
            why: str = phrase("is known after a second reading of the log: it needs {passes}", passes=words.TWO_PASSES)
            if describe(estimate.estimator).blended:
                why = "is not known, for it has no values of single trajectories"
            template = "the difference of {estimator} from the mean return {why}"
            reason = estimate.withheld or phrase(template, estimator=estimate.estimator, why=why)
            return cls(*about, None, None, estimate.episodes, estimate, None, reason)
        value, error, extremes = found.value.value, found.std_error, found.extremes
        std_error = None if error is None else error.value
        withheld: str | None = estimate.withheld
        if value is None or (error is not None and std_error is None and (error.log10 or 0.0) > 0):
            withheld = withheld or f"the difference of {estimate.estimator} from the mean return is beyond f64"
        elif max(abs(value), std_error or 0.0) <= SLACK * _scale(estimate, value):
            value, std_error = 0.0, None if error is None else 0.0
        elif estimate.terms.estimated and None not in (estimate.std_error, other_error):
            std_error, extremes = (estimate.std_error or 0.0) + (other_error or 0.0), None
        return cls(*about, value, std_error, estimate.episodes, estimate, extremes, withheld)

    @property
    def degrees(self) -> int | None:
        """Return None, since the degrees of freedom of the standard error are always taken as n − 1."""
        return None

    @property
    def terms(self) -> Terms:
        """Return the settings and facts of the evaluation on which bounds depend."""
        return self.estimate.terms

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
        """Return a confidence interval, by default with the settings of the evaluation; as `Estimate.interval` does.

        Methods that use the values of single trajectories read the log twice more when they are first asked for.

        >>> import offpolicy as op
        >>> ev = op.evaluate(op.demo_log(), discount=0.9, horizon=10, paired=True)
        >>> gain = ev.difference("target", "behavior", estimator="step-is")
        >>> certain = gain.interval(0.95, "betting", op.Bounds(reward=(0, 1)), side="lower")
        >>> certain.kind, 0 < certain.low < gain.value
        ('finite-sample', True)
        """
        settings, samples = self.estimate.settings, self.estimate.samples
        request = PairedRequest(
            method=settings.method if method is None else method,
            policy=self.policy,
            estimator=self.estimator,
            value=math.nan if self.value is None else self.value,
            std_error=self.std_error,
            episodes=self.episodes,
            terms=self.estimate.terms,
            samples=samples.once(
                PairedSamples,
                lambda: PairedSamples(
                    samples.scan,
                    samples.source,
                    samples.plan,
                    samples.normalisers,
                    crossing=samples.crossing,
                    reading=samples.reading,
                    horizon=samples.horizon,
                ),
            ),
            confidence=settings.confidence if confidence is None else confidence,
            side=side,
            bounds=settings.bounds if bounds is None else bounds,
            replicates=replicates,
            seed=seed,
            extremes=self.extremes,
            ess=self.estimate.ess,
        )
        return intervals.interval(request, self.withheld)

    @property
    def reason(self) -> str | None:
        """Return why a number is missing, or what to know about the interval."""
        return self.withheld or self.interval().reason


def _scale(estimate: Estimate, difference: float) -> float:
    """Return the magnitude of the numbers whose rounding may remain in a difference."""
    terms, value = estimate.terms, estimate.value or 0.0
    steps = terms.horizon if terms.discount == 1 else (1 - terms.discount**terms.horizon) / (1 - terms.discount)
    guess = abs(terms.baseline or 0.0) * steps if describe(estimate.estimator).needs_baseline else 0.0
    seen = (abs(number) for number in estimate.extremes or ())
    return max(abs(value), abs(value - difference), guess, *seen)
