"""The request for an interval, which a method gets, and the ends, which it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from offpolicy._util import words
from offpolicy._util.phrase import phrase
from offpolicy.errors import MissingBoundError, OffPolicyError
from offpolicy.evaluation.bounds import Bounds, Range, Terms
from offpolicy.evaluation.estimators import describe
from offpolicy.intervals.sketch import SLACK
from offpolicy.logs.trajectories import Samples
from offpolicy.protocols import Floats

#: The default number of bootstrap replicates.
REPLICATES = 2000


#: Methods that need only bounds on rewards, if the estimator allows that (`Request.by_rewards`).
BY_REWARDS = ("betting", "sequence", "hcope", "anderson")
#: The beginning of the reason if the log has values that the bounds exclude.
CONTRADICTED = "the log contradicts the given bounds"


class WithheldError(OffPolicyError):
    """The reason why there is no interval."""


@dataclass(frozen=True)
class Ends:
    """The ends of an interval, and the numbers that they rest on."""

    low: float | None
    high: float | None
    assumptions: dict[str, Any]


@dataclass(frozen=True)
class Request:
    """An estimate, and the interval that is requested for it."""

    method: str
    policy: str
    estimator: str
    value: float
    std_error: float | None
    episodes: int
    terms: Terms
    samples: Samples
    confidence: float
    side: str = "two"
    bounds: Bounds | None = None
    replicates: int = REPLICATES
    seed: int = 0
    extremes: Range | None = None  # the least and the largest value of a trajectory, if they are known
    degrees: int | None = None  # degrees of freedom of the standard error, if they are not n − 1
    ess: float | None = None  # the effective sample size of the weights, n without weights

    def own_ends(self) -> Callable[[Request], Ends] | None:
        """Return a function that finds the ends instead of the method's own, or None to use the method's own."""
        return None

    @property
    def own_error(self) -> bool:
        """Whether the standard error is that of independent trajectories with a known π0."""
        return self.degrees is None and self.samples.clusters is None

    @property
    def by_rewards(self) -> bool:
        """Whether there are values with the same mean that bounds on rewards alone bound from one side.

        Such values are r + Σ γ^{t−1} c_t (r_t − r) and g + c_H (G − g), which equal r or g if the weights are 0.
        """
        about = describe(self.estimator)
        return about.with_baseline is not None or about.range == "weighted-return"

    @property
    def tail(self) -> float:
        """The probability with which each end may miss the truth."""
        return (1 - self.confidence) / (2 if self.side == "two" else 1)

    @property
    def quantile(self) -> float:
        """1 − `tail`, rounded once."""
        return 0.5 + self.confidence / 2 if self.side == "two" else self.confidence

    @property
    def wants_low(self) -> bool:
        """Whether a lower end is requested."""
        return self.side != "upper"

    @property
    def wants_high(self) -> bool:
        """Whether an upper end is requested."""
        return self.side != "lower"

    def around(self, center: float, half: float, **assumptions: Any) -> Ends:
        """Return center ∓ half, on the requested sides."""
        low = center - half if self.wants_low else None
        high = center + half if self.wants_high else None
        return Ends(low, high, assumptions)

    def values(self) -> Floats:
        """Return the value of each trajectory, whose mean is the estimate; the log is read for them.

        An estimator that is no such mean is refused, as `needs_means` of a method says beforehand.
        """
        if describe(self.estimator).weighted:
            raise WithheldError(f"{self.method} needs values of trajectories, and {self.estimator} has none: ask for t")
        found: Floats = self.samples.values(self.policy, self.estimator)["value"].to_numpy()
        return found

    def given(self) -> Bounds:
        """Return the given bounds, and withhold the interval if they are missing or not certain to hold."""
        if self.bounds is None:
            raise WithheldError(
                phrase(
                    "{method} needs {needed}: ranges are given, never taken from the sample",
                    method=self.method,
                    needed=self.needed(),
                )
            )
        if not self.bounds.hold(self.terms):
            raise WithheldError(
                phrase(
                    "{method} needs {horizon}: the longest episode of the sample bounds nothing",
                    method=self.method,
                    horizon=words.argument("horizon"),
                )
            )
        if self.bounds.fixed_length and self.terms.shortest not in (None, self.terms.horizon):
            raise WithheldError(
                f"{CONTRADICTED}: fixed_length=True, and an episode has {self.terms.shortest} of {self.terms.horizon} "
                "steps"
            )
        if self.terms.estimated and describe(self.estimator).uses_weights:
            raise WithheldError(
                f"{self.method} promises something for finite samples where π0 is known, and it was estimated: ask for "
                "t"
            )
        if self.terms.mended:
            raise WithheldError(
                f"{self.method} promises something of whole episodes, and {self.terms.mended}: ask for t"
            )
        return self.bounds

    def needed(self) -> str:
        """Return in words which bounds the method needs for this estimator, and the horizon if that is missing too."""
        about, by_rewards = describe(self.estimator), self.method in BY_REWARDS and self.by_rewards
        ratio = about.uses_weights and not by_rewards
        names = [
            "reward",
            *(["ratio"] if ratio else []),
            *(["q"] if ratio and "v_hat" in about.needs else []),
        ]
        return words.both([words.bounds(*names), *([words.argument("horizon")] if self.terms.longest_seen else [])])

    def possible(self) -> Range:
        """Return the least and the largest value that a trajectory can have by the bounds."""
        return self.given().range(self.estimator, self.terms)

    def vacuous(self, low: float | None, high: float | None) -> str | None:
        """Return a remark if the interval contains every possible value."""
        return None if self.bounds is None else self.bounds.vacuous(low, high, self.terms)

    def range(self) -> Range:
        """Return the possible range of values, and withhold the interval if the log contradicts it."""
        try:
            lowest, highest = self.possible()
        except MissingBoundError as error:
            raise WithheldError(error.message) from None
        if self.extremes is not None:
            slack = SLACK * max(abs(lowest), abs(highest))
            for value, limit, beyond in zip(self.extremes, (lowest, highest), (-1, 1), strict=True):
                if beyond * (value - limit) > slack:
                    raise WithheldError(f"{CONTRADICTED}: a trajectory has the value {value:g}, beyond {limit:g}")
        return lowest, highest
