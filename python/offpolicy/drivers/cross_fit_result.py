"""The result of cross-fitting: estimates pooled over folds, and those of each fold.

    V = (1/n) Σ_i x_i,    SE = s(x_1, …, x_n) / √n        x_i: the value of trajectory i, with the model of other folds

Given the other folds, the values of a fold are independent and their mean is unbiased; hence V is unbiased. The models
of different folds share trajectories, which SE ignores: this is an effect of second order that vanishes as the models
converge.

A bound for finite samples is made fold by fold at level 1 - δ/k and averaged (n_j trajectories in fold j):

    Σ_j n_j/n · [low_j, high_j]        each misses with probability ≤ δ/k, all together with ≤ δ
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from offpolicy import intervals
from offpolicy._util.printing import readable, whole_tables
from offpolicy.annotation.annotator import MODELLED
from offpolicy.errors.kinds.of_evaluation import several_models
from offpolicy.evaluation.bounds import Bounds
from offpolicy.evaluation.estimate import Estimate
from offpolicy.evaluation.estimators import describe
from offpolicy.evaluation.result import Evaluation
from offpolicy.evaluation.verdict import Verdict
from offpolicy.intervals import Interval, auto
from offpolicy.intervals.sketch import Sketch

#: How many folds a sentence lists, and how many sentences there are at most.
SHOWN = 10


@dataclass(frozen=True)
class Fold:
    """The evaluation of one fold with a model that was fitted to the `train` episodes of the other folds."""

    number: int
    train: int
    evaluation: Evaluation

    def find(self, policy: str, estimator: str) -> Estimate | None:
        """Return the estimate, or None if the fold's own weights are too few for it."""
        found = (e for e in self.evaluation.estimates if (e.policy, e.estimator) == (policy, estimator))
        return next(found, None)

    def lacking(self, policy: str, estimator: str) -> str | None:
        """Return why the fold alone has no such estimate or no standard error of it, or None if it has both."""
        found = self.find(policy, estimator)
        if found is None:
            told = (note for note in self.evaluation.notes if f"policy {policy!r}" in note)
            return next(told, f"{estimator} has no value")
        return found.interval(method="t").reason if found.std_error is None else None


@dataclass(frozen=True)
class PooledEstimate(Estimate):
    """An estimate over all folds, with the folds behind it."""

    folds: tuple[Fold, ...] = ()

    def interval(
        self,
        confidence: float | None = None,
        method: str | None = None,
        bounds: Bounds | None = None,
        side: str = "two",
        **options: Any,
    ) -> Interval:
        """Return an interval as `Estimate.interval` does.

        For an estimator with a model, an interval for finite samples is the average of the folds' intervals.
        """
        level = self.settings.confidence if confidence is None else confidence
        name = self.settings.method if method is None else method
        intervals.check(name, level, side)
        if name == auto.AUTO:
            request = self._request(name, confidence, bounds, side, **options)
            return auto.take(request, lambda rung: self.interval(confidence, rung, bounds, side, **options))
        kind = intervals.method_of(name).kind
        if kind in ("asymptotic", "heuristic") or not self._modelled:
            return super().interval(confidence, method, bounds, side, **options)
        without = Interval(None, None, name, kind, level, side=side)
        if kind == "anytime":
            return replace(without, reason="models fitted anew change all values: no promise holds for every look")
        miss = (1 - level) / len(self.folds)
        found, lacking = [], {}
        for fold in self.folds:
            alone = fold.find(self.policy, self.estimator)
            part = without if alone is None else alone.interval(1 - miss, name, bounds, side, **options)
            found.append(part)
            if (part.low, part.high) == (None, None):
                lacking[fold.number] = part.reason or fold.lacking(self.policy, self.estimator) or ""
        if lacking:
            shared = len(lacking) == len(found) and len(set(lacking.values())) == 1
            said = list(lacking.values())[:1] if shared else sentences(lacking.items())
            return replace(without, reason="; ".join(said))
        given = self.settings.bounds if bounds is None else bounds
        pooled = replace(self._average(found), confidence=level)
        vacuous = None if given is None else given.vacuous(pooled.low, pooled.high, self.terms)
        return replace(pooled, reason=vacuous)

    def sketch(self, bounds: Bounds | None = None, side: str = "lower", by: str = "rewards") -> Sketch:
        """Return a sketch as `Estimate.sketch` does, and refuse an estimator with a model.

        Its values come from the models of several folds and are not independent.
        """
        if self._modelled:
            raise several_models(estimator=self.estimator)
        return super().sketch(bounds, side, by)

    @property
    def _modelled(self) -> bool:
        return bool(set(MODELLED) & set(describe(self.estimator).needs))

    def _average(self, each: list[Interval]) -> Interval:
        """Return the mean of the folds' intervals, weighted by their numbers of trajectories."""
        sizes = [fold.evaluation.episodes / self.episodes for fold in self.folds]

        def mean(ends: list[float | None]) -> float | None:
            known = [end for end in ends if end is not None]
            return math.fsum(map(math.prod, zip(sizes, known, strict=True))) if known else None

        first = each[0].assumptions
        shared = {name: first[name] for name in first if all(part.assumptions[name] == first[name] for part in each)}
        low, high = mean([part.low for part in each]), mean([part.high for part in each])
        return replace(each[0], low=low, high=high, assumptions=shared | {"folds": len(each)})


@dataclass(frozen=True)
class CrossFit:
    """The pooled evaluation, which has everything that `evaluate` returns, and the folds behind it.

    >>> import offpolicy as op
    >>> from offpolicy.testing import Walk
    >>> walk = Walk()
    >>> log = walk.simulate(walk.behavior, n=300, seed=0)
    >>> cf = op.cross_fit(log, walk, policy=walk.policies["eager"], estimators=["dr"])
    >>> cf.folds.select("fold", "episodes", "train_episodes", "estimator").rows()
    [(0, 155, 145, 'dr'), (1, 145, 155, 'dr')]
    >>> cf["dr"].value == cf.evaluation["dr"].value == cf.table["value"][0]
    True
    """

    evaluation: Evaluation
    parts: tuple[Fold, ...]

    @classmethod
    def pooled(cls, evaluation: Evaluation, parts: tuple[Fold, ...]) -> CrossFit:
        """Return the result in which every pooled estimate has its folds, with notes on what single folds lack."""
        estimates = tuple(PooledEstimate(**vars(found), folds=parts) for found in evaluation.estimates)
        pooled = cls(replace(evaluation, estimates=estimates), parts)
        null = pl.any_horizontal(pl.col("value", "std_error").is_null())
        lacking = pooled.folds.filter(null).select("fold", "reason").iter_rows()
        return cls(replace(pooled.evaluation, notes=evaluation.notes + sentences(lacking)), parts)

    def __str__(self) -> str:
        """Return the text of the evaluation, followed by the table of folds."""
        with whole_tables():
            return f"{self.evaluation}\n{readable(self.folds)}"

    def __getitem__(self, key: str | tuple[str, str]) -> Estimate:
        """Return a pooled estimate by estimator, or by policy and estimator."""
        return self.evaluation[key]

    @property
    def table(self) -> pl.DataFrame:
        """A table with one row per pooled estimate."""
        return self.evaluation.table

    @property
    def verdict(self) -> Verdict:
        """The verdict on whether the pooled estimates can be trusted."""
        return self.evaluation.verdict

    @property
    def notes(self) -> list[str]:
        """The notes of the evaluation."""
        return self.evaluation.notes

    @property
    def folds(self) -> pl.DataFrame:
        """A table with one row per fold and estimate; `reason` says why a number that is null cannot be computed."""
        schema = {
            "fold": pl.Int64,
            "policy": pl.String,
            "estimator": pl.String,
            "value": pl.Float64,
            "std_error": pl.Float64,
            "episodes": pl.Int64,
            "steps": pl.Int64,
            "train_episodes": pl.Int64,
            "reason": pl.String,
        }
        rows = []
        for part in self.parts:
            for pooled in self.evaluation.estimates:
                found = part.find(pooled.policy, pooled.estimator)
                numbers = (found.value, found.std_error) if found else (None, None)
                size = (part.evaluation.episodes, part.evaluation.steps, part.train)
                reason = part.lacking(pooled.policy, pooled.estimator)
                rows.append((part.number, pooled.policy, pooled.estimator, *numbers, *size, reason))
        return pl.DataFrame(rows, schema=schema, orient="row")

    def values(self, estimator: str, policy: str | None = None) -> pl.DataFrame:
        """Return the values of trajectories as `Evaluation.values` does, each with the model of the other folds."""
        return self.evaluation.values(estimator, policy)

    def to_dict(self) -> dict[str, Any]:
        """Return the pooled evaluation with its provenance, and the folds, in a form ready for JSON.

        >>> import offpolicy as op
        >>> from offpolicy.testing import Walk
        >>> walk = Walk()
        >>> log = walk.simulate(walk.behavior, n=50, seed=0)
        >>> found = op.cross_fit(log, walk, policy=walk.behavior, estimators=["dr"]).to_dict()
        >>> found["settings"]["cross_fit"]["fitter"], len(found["folds"])
        ('tabular', 2)
        """
        return self.evaluation.to_dict() | {"folds": self.folds.to_dicts()}


def sentences(lacking: Iterable[tuple[int, str]]) -> list[str]:
    """Return one sentence per reason with the folds that have it; beyond `SHOWN` reasons, only their number.

    >>> sentences([(3, "a single trajectory"), (5, "no weight"), (7, "a single trajectory")])
    ['folds 3, 7: a single trajectory', 'fold 5: no weight']
    """
    by_reason: dict[str, list[int]] = {}
    for number, reason in lacking:
        by_reason.setdefault(reason, []).append(number)
    found = [f"{_named(list(dict.fromkeys(folds)))}: {reason}" for reason, folds in by_reason.items()]
    more = [f"{len(found) - SHOWN} more reasons are in the table of folds"] if len(found) > SHOWN else []
    return found[:SHOWN] + more


def _named(folds: list[int]) -> str:
    more = f" and {len(folds) - SHOWN} more" if len(folds) > SHOWN else ""
    return f"fold{'s' if len(folds) > 1 else ''} {', '.join(map(str, folds[:SHOWN]))}{more}"
