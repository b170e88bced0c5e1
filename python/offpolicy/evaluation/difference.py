"""The difference of a policy's value from that of the logged policy, on the same trajectories.

    Δ = θ − Ḡ,    SE² = Σ (d_i − d̄)² / (n (n − 1)),    d_i = ψ_i − G_i

where ψ_i is the value of trajectory i, or its influence value for a weighted estimator, and G_i its return. What moves
an estimate and the mean return alike leaves d_i alone, so that SE is often far smaller than the error of either.

Where π0 was estimated, what the estimation adds to θ does not cancel. Then SE is the sum of the errors of θ, which know
of the estimation (see `std_errors`), and of Ḡ: no difference has a larger one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from offpolicy import _core, intervals
from offpolicy._util import words
from offpolicy._util.phrase import phrase
from offpolicy.evaluation.bounds import Bounds, Range, Terms
from offpolicy.evaluation.estimate import Estimate
from offpolicy.evaluation.estimators import describe
from offpolicy.intervals import Interval
from offpolicy.intervals.paired import PairedRequest, PairedSamples
from offpolicy.intervals.request import REPLICATES
from offpolicy.intervals.sketch import SLACK


@dataclass(frozen=True)
class Difference:
    """How much more a policy earns than another, with the standard error of paired values of trajectories.

    `withheld` is the reason where there is no interval.

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
        cls, estimate: Estimate, against: str, found: _core.DifferenceOutcome | None, other_error: float | None
    ) -> Difference:
        """Read what the core found; what only rounding makes different from 0 is 0, as for a policy and itself.

        `other_error` is the standard error of the mean return.
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
        """The degrees of freedom of its error, where they are not n − 1."""
        return None

    @property
    def terms(self) -> Terms:
        """What of the evaluation its bounds depend on."""
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
        """Return a confidence interval, by default of the evaluation's kind and level; as of an estimate.

        Methods that are made of single trajectories read the log twice more, the first time.

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
        """Say why a number is missing, or what to know about the interval."""
        return self.withheld or self.interval().reason


def _scale(estimate: Estimate, difference: float) -> float:
    """Return the size of the numbers whose rounding may be left in a difference."""
    terms, value = estimate.terms, estimate.value or 0.0
    steps = terms.horizon if terms.discount == 1 else (1 - terms.discount**terms.horizon) / (1 - terms.discount)
    guess = abs(terms.baseline or 0.0) * steps if describe(estimate.estimator).needs_baseline else 0.0
    seen = (abs(number) for number in estimate.extremes or ())
    return max(abs(value), abs(value - difference), guess, *seen)
