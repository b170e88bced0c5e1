"""Estimates of candidates on episodes that they have not seen, Jiang & Li (2016), section 6.2.

A candidate made of D_train is evaluated on D ∖ D_train, and Q̂ is fitted to D_train too: neither the policy nor its
model has seen an episode that it is evaluated on. The candidates of a split share one model, one pass over D ∖ D_train,
and what their policies have in common: (1-α)π + απ0 asks π and π0 once for all α.

A score bounds the value V of a candidate, or its gain D̄, the mean of D_i = X_i − G_i over the episodes that it is
evaluated on: the value of trajectory i less its return. Where rewards are costs, `step-is` flatters a policy whose
weights vanish, for costs that nobody is seen to pay look spared. A gain is therefore made of rewards counted from the
lowest, a: aΓ + Σ_t γ^{t−1} c_t (r_t − a), which is `dr-bsl` with the baseline a and has the same expectation.
Finite-sample bounds need no such care: they hold as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import polars as pl

from offpolicy._util.probabilities import Tally
from offpolicy.annotation.annotate import annotate
from offpolicy.annotation.annotated_logs import remember, tallies_of
from offpolicy.annotation.side_by_side import values_of
from offpolicy.annotation.transition_ratio import unknown_ratio
from offpolicy.drivers.lower_bound import LowerBound
from offpolicy.evaluation.estimators import NEEDS
from offpolicy.evaluation.evaluate import evaluate
from offpolicy.evaluation.options import ProgressFunction
from offpolicy.evaluation.result import Evaluation
from offpolicy.evaluation.verdict import Verdict
from offpolicy.extensions import plugins
from offpolicy.folds import split
from offpolicy.logs.columns import Columns, PolicyColumns
from offpolicy.policies import Mixture
from offpolicy.protocols import Candidate, ModelFitter, Policy, Setting, ValueModel


@dataclass(frozen=True)
class Score:
    """What the log says of a candidate: `score` is the lower bound that decides.

    `reason` is why there is none, or why the candidate is not `eligible`.
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
    """How candidates are evaluated; `log` has the default names of columns, and can be read again and again."""

    log: Any
    domain: Setting
    estimator: str
    fitter: str | ModelFitter
    train_fraction: float
    first_step: int
    settings: dict[str, Any]
    transition_ratio: bool = True
    against: str = "difference"  # what a score bounds: the gain, or the "value"
    floor: float | None = None  # the reward from which the gain of step-is counts
    tally: Tally = field(default_factory=Tally)

    def scores(self, candidates: Sequence[Candidate], bound: LowerBound, advance: ProgressFunction) -> list[Score]:
        """The score of each candidate, a split at a time."""
        found: dict[str, Score] = {}
        for fraction, group in groupby(sorted(candidates, key=self._fraction), key=self._fraction):
            found |= {score.candidate.name: score for score in self._split(fraction, list(group), bound)}
            advance(len(found), len(candidates))
        return [found[candidate.name] for candidate in candidates]

    @property
    def _gained_by(self) -> str:
        """The estimator whose values gains are made of."""
        return self.estimator if self.floor is None else "dr-bsl"

    @property
    def _modelled(self) -> list[str]:
        """What the estimator needs of a model."""
        return [role for role in NEEDS[self.estimator] if role != "ratio"]

    def _fraction(self, candidate: Candidate) -> float:
        """How much of the log the candidate and its Q̂ have seen."""
        alone = candidate.train_fraction == 0 and candidate.model is None
        return self.train_fraction if alone and self._modelled else candidate.train_fraction

    def _split(self, fraction: float, candidates: list[Candidate], bound: LowerBound) -> Iterator[Score]:
        train, test = split(self.log, fraction)
        lacking = _lacking(fraction, train, test)
        if lacking is not None:
            yield from (Score(candidate, fraction, reason=lacking) for candidate in candidates)
            return
        ev = self._evaluate(train, test, candidates)
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

    def _evaluate(self, train: Any, test: Any, candidates: list[Candidate]) -> Evaluation:
        """All candidates of a split in one scan."""
        states = Columns.of(self.domain)
        known = self.domain if self.transition_ratio else None
        annotated = Annotated(test, states, self.first_step, self.settings["threads"], known)
        targets = [annotated.probability(candidate.policy) for candidate in candidates]
        columns = [PolicyColumns(target_prob=target) for target in targets]
        if self._modelled:
            values = annotated.values(self._values(train, candidates), self._modelled)
            columns = [replace(mine, **names) for mine, names in zip(columns, values, strict=True)]
        policies = {candidate.name: mine for candidate, mine in zip(candidates, columns, strict=True)}
        estimators, settings = [self.estimator], self.settings
        if self.floor is not None:
            estimators, settings = [*estimators, self._gained_by], {**settings, "baseline": self.floor}
        return evaluate(annotated.log, estimators=estimators, policies=policies, paired=True, **settings)

    def _values(self, train: Any, candidates: list[Candidate]) -> list[ValueModel]:
        """Q̂ of each candidate, by its own model of D_train or by one that is fitted for all that have none."""
        if any(candidate.model is None for candidate in candidates):
            fitter = plugins.fitter(self.fitter) if isinstance(self.fitter, str) else self.fitter
            fitted = fitter.fit(train, self.domain)
        models = [fitted if candidate.model is None else candidate.model for candidate in candidates]
        found: dict[int, ValueModel] = {}
        for model in {id(model): model for model in models}.values():
            mine = [i for i, other in enumerate(models) if other is model]
            policies = [candidates[i].policy for i in mine]
            found |= zip(mine, values_of(model, policies, self.domain.horizon, self.domain.discount), strict=True)
        return [found[i] for i in range(len(candidates))]


@dataclass
class Annotated:
    """A log that grows columns as they are asked for; each policy is asked once."""

    log: Any
    columns: Columns
    first_step: int
    threads: int | None
    domain: Setting | None  # whose P makes P̂/P
    probabilities: dict[int, str] = field(default_factory=dict)
    added: int = 0

    def probability(self, policy: Policy) -> str:
        """The column of π(a|s). Mixtures of mixtures may be deeper than the stack: what waits is in a list."""
        known, waiting = self.probabilities, [policy]
        while waiting:
            asked = waiting.pop()
            if id(asked) in known:
                continue
            parts = [asked.behavior, asked.policy] if isinstance(asked, Mixture) else []
            if missing := [part for part in parts if id(part) not in known]:
                waiting += [asked, *missing]
                continue
            known[id(asked)] = column = self._new("target_prob")
            if isinstance(asked, Mixture):
                ours, theirs = pl.col(known[id(asked.policy)]), pl.col(known[id(asked.behavior)])
                mixed = self.log.with_columns(((1 - asked.alpha) * ours + asked.alpha * theirs).alias(column))
                self.log = remember(mixed, *tallies_of(self.log))
            else:
                self._annotate(policy=asked, into=PolicyColumns(target_prob=column))
        return known[id(policy)]

    def values(self, models: Sequence[ValueModel], roles: Sequence[str]) -> list[dict[str, Any]]:
        """The columns of what models say, by role, and P̂/P for R̂ where it is known; all are looked up at once."""
        known = {True: [*roles, "transition_ratio"], False: list(roles)}
        ratio = ["r_hat" in roles and unknown_ratio(self.domain, model) is None for model in models]
        new: list[dict[str, Any]] = [{role: self._new(role) for role in known[has]} for has in ratio]
        domain = self.domain if any(ratio) else None
        self._annotate(model=models, into=[PolicyColumns(**names) for names in new], domain=domain)
        return new

    def _annotate(self, **what: Any) -> None:
        shared: dict[str, Any] = {"columns": self.columns, "first_step": self.first_step, "threads": self.threads}
        self.log = annotate(self.log, **what, **shared)

    def _new(self, role: str) -> str:
        self.added += 1
        return f"__{role}_{self.added}__"


def _lacking(fraction: float, train: Any, test: Any) -> str | None:
    """Why a split is of no use."""
    if fraction > 0 and _is_empty(train):
        return f"no episode is in the first {fraction:g} of the log, to train on"
    if _is_empty(test):
        return f"no episode is in the log beyond its first {fraction:g}, to evaluate on"
    return None


def _is_empty(log: Any) -> bool:
    return bool(log.lazy().head(1).collect().is_empty())
