"""Estimates of candidates on episodes that they have not seen, Jiang & Li (2016), section 6.2.

A candidate made from D_train is evaluated on D ∖ D_train, and Q̂ is fitted to D_train too: neither the policy nor its
model has seen an episode that it is evaluated on. The candidates of a split share one model, one pass over D ∖ D_train,
and the common parts of their policies: for (1-α)π + απ0, π and π0 are asked once for all α.

A score bounds the value V of a candidate or its gain D̄. The gain is the mean of D_i = X_i − G_i, the value of
trajectory i minus its return, over the episodes that the candidate is evaluated on. If rewards are costs, `step-is`
flatters a policy whose weights vanish, because costs without weight look as if they were saved. A gain is therefore
computed from rewards measured from the lowest one, a: aΓ + Σ_t γ^{t−1} c_t (r_t − a), which is `dr-bsl` with the
baseline a and has the same expectation. Finite-sample bounds do not need this: they hold as they are.

Candidates are compared by one of two lower bounds,

    V − C σ                        σ the standard error: below the true value with probability Φ(C), if V is normal
    the lower end of an interval   one-sided, of level 1−δ

or by the same for a gain, V − V(π0), instead of V. The best of m bounds is wrong more often than a single bound. By
Bonferroni's inequality all m hold at once with probability

    at least max(0, 1 − m δ),    δ = Φ(−C) for V − Cσ

however the candidates depend on each other, if each bound holds with probability 1 − δ. A finite-sample bound does. A
bound by the normal law does in the limit of many trajectories; docs/results/improvement has how often it held in finite
samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from statistics import NormalDist
from typing import Any

from offpolicy import intervals
from offpolicy._util import words
from offpolicy._util.phrase import phrase
from offpolicy._util.probabilities import Tally
from offpolicy._util.scalars import at_least_0, is_number
from offpolicy.drivers.arguments import read_fitter
from offpolicy.drivers.split_log import Sides
from offpolicy.errors.kinds.of_arguments import bad_value, give_one, interval_not_named
from offpolicy.evaluation.bounds import Bounds
from offpolicy.evaluation.difference import Difference
from offpolicy.evaluation.estimate import Estimate
from offpolicy.evaluation.estimators import describe
from offpolicy.evaluation.evaluate import evaluate
from offpolicy.evaluation.options import ProgressFunction
from offpolicy.evaluation.result import Evaluation
from offpolicy.evaluation.verdict import Verdict
from offpolicy.intervals import Interval
from offpolicy.intervals.rounding import no_spread
from offpolicy.logs.columns import PolicyColumns
from offpolicy.protocols import Candidate, ModelFitter, Setting, ValueModel

CAUTION, CONFIDENCE = 1.0, 0.95
#: The message if both ways to ask for a lower bound are used.
NOT_BOTH = phrase(
    "{caution}, the C of V − Cσ, or {interval}, not both",
    caution=words.argument("caution"),
    interval=words.argument("interval"),
)
NORMAL = NormalDist()


@dataclass(frozen=True)
class LowerBound:
    """A lower bound: V − Cσ if `caution` is C, otherwise that of the interval `method`; it may fail with probability δ.

    `symbol` is the name of the bounded quantity in tables: the value V, or the gain.

    >>> from offpolicy.drivers.score import LowerBound
    >>> bound = LowerBound.chosen(caution=2.0)
    >>> print(bound, round(bound.confidence, 4), round(bound.corrected(10), 4))
    V - 2σ 0.9772 0.7725
    """

    caution: float | None
    method: str | None
    delta: float
    bounds: Bounds | None = None
    symbol: str = "V"

    @classmethod
    def chosen(
        cls,
        caution: float | None = None,
        method: str | None = None,
        confidence: float | None = None,
        bounds: Bounds | None = None,
        symbol: str = "V",
    ) -> LowerBound:
        """Return the bound that the arguments of `improve` ask for."""
        if method is None:
            if confidence is not None or bounds is not None:
                what = "bounds are" if confidence is None else "confidence is"
                raise interval_not_named(what=what)
            c = CAUTION if caution is None else at_least_0("caution", caution)
            return cls(c, None, NORMAL.cdf(-c), symbol=symbol)
        if caution is not None:
            raise give_one(choices=NOT_BOTH)
        level = CONFIDENCE if confidence is None else confidence
        if not (is_number(level) and 0.5 < level < 1):
            raise bad_value(name="confidence of a lower bound", expected="above 0.5 and below 1", found=repr(level))
        intervals.check(method, level, "lower")
        return cls(None, method, 1 - level, bounds, symbol)

    def __str__(self) -> str:
        """Return the name of the bound in tables."""
        if self.caution is None:
            return f"{self.confidence:.4g} {self.method} bound"
        return f"{self.symbol} - {self.caution:g}σ"

    @property
    def confidence(self) -> float:
        """The probability that a single bound holds."""
        return 1 - self.delta

    def corrected(self, candidates: int) -> float:
        """Return the least probability that the bounds of all candidates hold at once."""
        return max(0.0, 1 - candidates * self.delta)

    def of(self, estimate: Estimate | Difference) -> Interval:
        """Return the bound as `low` of an interval without an upper end; if there is none, `reason` says why."""
        if self.caution is None:
            return estimate.interval(self.confidence, self.method, self.bounds, side="lower")
        value, error = estimate.value, estimate.std_error
        without = Interval(None, None, str(self), "asymptotic", self.confidence, side="lower")
        if estimate.withheld is not None or value is None or error is None:
            return replace(without, reason=estimate.withheld or "a single trajectory has no standard error")
        if self.caution > 0 and (unknown := no_spread(estimate)) is not None:
            return replace(without, reason=unknown)
        low = value - self.caution * error
        if not math.isfinite(low):
            return replace(without, reason=f"{self} is beyond the range of f64")
        return replace(without, low=low, assumptions={"caution": self.caution, "std_error": error})


@dataclass(frozen=True)
class Score:
    """The estimates of a candidate; `score` is the lower bound that decides.

    `reason` says why there is no score, or why the candidate is not `eligible`.
    """

    candidate: Candidate
    train_fraction: float
    episodes: int = 0
    value: float | None = None
    std_error: float | None = None
    gain: float | None = None
    gain_error: float | None = None
    score: float | None = None
    ess: float | None = None
    verdict: Verdict | None = None
    reason: str | None = None
    eligible: bool = True


@dataclass(frozen=True)
class Scoring:
    """The evaluation of candidates on a log with the default names of columns, which can be read again and again."""

    log: Any
    domain: Setting
    estimator: str
    fitter: str | ModelFitter
    train_fraction: float
    first_step: int
    settings: dict[str, Any]
    transition_ratio: bool = True
    against: str = "difference"  # a score bounds the gain, or with "value" the value
    floor: float | None = None  # the reward from which the gain of step-is is measured
    tally: Tally = field(default_factory=Tally)

    def scores(self, candidates: Sequence[Candidate], bound: LowerBound, advance: ProgressFunction) -> list[Score]:
        """Return the score of each candidate; the candidates of one split are scored together."""
        found: dict[str, Score] = {}
        for fraction, group in groupby(sorted(candidates, key=self._fraction), key=self._fraction):
            found |= {score.candidate.name: score for score in self._split(fraction, list(group), bound)}
            advance(len(found), len(candidates))
        return [found[candidate.name] for candidate in candidates]

    @property
    def _gained_by(self) -> str:
        """The estimator whose values make the gain."""
        with_baseline = describe(self.estimator).with_baseline
        return self.estimator if self.floor is None or with_baseline is None else with_baseline

    @property
    def _modelled(self) -> list[str]:
        """The columns of a model that the estimator needs."""
        return [role for role in describe(self.estimator).needs if role != "ratio"]

    def _fraction(self, candidate: Candidate) -> float:
        """Return the share of the log that the candidate and its Q̂ have seen."""
        alone = candidate.train_fraction == 0 and candidate.model is None
        return self.train_fraction if alone and self._modelled else candidate.train_fraction

    def _split(self, fraction: float, candidates: list[Candidate], bound: LowerBound) -> Iterator[Score]:
        threads = self.settings["threads"]
        sides = Sides.by_fraction(self.log, fraction, self.domain, self.first_step, threads)
        lacking = sides.lacking(fraction)
        if lacking is not None:
            yield from (Score(candidate, fraction, reason=lacking) for candidate in candidates)
            return
        ev = self._evaluate(sides, candidates)
        self.tally.add(ev.repairs.get("renormalised", 0))
        for candidate in candidates:
            estimate = ev[candidate.name, self.estimator]
            gain = ev.difference(candidate.name, estimator=self._gained_by)
            decides = gain if self.against == "difference" else estimate
            low = bound.of(decides)
            yield Score(
                candidate,
                fraction,
                episodes=ev.episodes,
                value=estimate.value,
                std_error=estimate.std_error,
                gain=gain.value,
                gain_error=gain.std_error,
                score=low.low,
                ess=estimate.ess,
                verdict=ev.verdict_on(ev[candidate.name, decides.estimator]),
                reason=low.reason,
            )

    def _evaluate(self, sides: Sides, candidates: list[Candidate]) -> Evaluation:
        """Evaluate all candidates of a split in one scan."""
        annotated = sides.growing(self.domain if self.transition_ratio else None)
        targets = [annotated.probability(candidate.policy) for candidate in candidates]
        columns = [PolicyColumns(target_prob=target) for target in targets]
        if self._modelled:
            values = annotated.values(self._values(sides, candidates), self._modelled)
            columns = [replace(mine, **names) for mine, names in zip(columns, values, strict=True)]
        policies = {candidate.name: mine for candidate, mine in zip(candidates, columns, strict=True)}
        estimators, settings = [self.estimator], self.settings
        if self.floor is not None:
            estimators, settings = [*estimators, self._gained_by], {**settings, "baseline": self.floor}
        return evaluate(annotated.log, estimators=estimators, policies=policies, paired=True, **settings)

    def _values(self, sides: Sides, candidates: list[Candidate]) -> list[ValueModel]:
        """Return Q̂ of each candidate, by its own model of D_train or by one fitted for all that have no model."""
        if any(candidate.model is None for candidate in candidates):
            fitted = sides.fit(read_fitter(self.fitter))
        models = [fitted if candidate.model is None else candidate.model for candidate in candidates]
        found: dict[int, ValueModel] = {}
        for model in {id(model): model for model in models}.values():
            mine = [i for i, other in enumerate(models) if other is model]
            policies = [candidates[i].policy for i in mine]
            found |= zip(mine, sides.values(model, policies), strict=True)
        return [found[i] for i in range(len(candidates))]
