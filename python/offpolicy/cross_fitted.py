"""The result of cross-fitting: estimates pooled over folds, and the folds one by one.

    V = (1/n) Σ_i x_i,    SE = s(x_1, …, x_n) / √n        x_i: the value of trajectory i, with the model of other folds

Given the others, the values of a fold are independent and each fold's mean is unbiased; so is V. Between folds the
models have trajectories in common, which SE leaves out: an effect of second order, that vanishes as the models settle.

A bound that holds for finite samples is made fold by fold, at level 1 - δ/k, and averaged (n_j trajectories in fold j):

    Σ_j n_j/n · [low_j, high_j]        each misses with probability ≤ δ/k, all together with ≤ δ
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from offpolicy.annotator import MODELLED
from offpolicy.bounds import Bounds
from offpolicy.estimators import NEEDS
from offpolicy.evaluation import Estimate, Evaluation
from offpolicy.intervals import Interval
from offpolicy.verdict import Verdict


@dataclass(frozen=True)
class Fold:
    """The evaluation of one fold with the model of the others; `train` episodes were there to fit it."""

    number: int
    train: int
    evaluation: Evaluation

    def find(self, policy: str, estimator: str) -> Estimate | None:
        """The estimate, if the fold has it: its weights alone may be too few."""
        found = (e for e in self.evaluation.estimates if (e.policy, e.estimator) == (policy, estimator))
        return next(found, None)


@dataclass(frozen=True)
class PooledEstimate(Estimate):
    """An estimate over all folds, with those of the folds."""

    folds: tuple[Estimate | None, ...] = ()

    def interval(
        self, confidence: float | None = None, method: str | None = None, bounds: Bounds | None = None
    ) -> Interval:
        """As everywhere; one for finite samples is the average of the folds', where their models differ."""
        found = super().interval(confidence, method, bounds)
        alike = not set(MODELLED) & set(NEEDS[self.estimator])
        if alike or found.kind != "finite-sample" or found.low is None:
            return found
        miss = (1 - found.confidence) / len(self.folds)
        each = [fold and fold.interval(1 - miss, found.method, bounds) for fold in self.folds]
        sizes = [fold.episodes / self.episodes for fold in self.folds if fold is not None]
        ends = [(part.low, part.high) for part in each if part and part.low is not None and part.high is not None]
        if len(ends) < len(self.folds):
            return replace(found, low=None, high=None, reason="a fold has no interval of its own", assumptions={})
        low, high = (math.fsum(map(math.prod, zip(sizes, side, strict=True))) for side in zip(*ends, strict=True))
        given = self.settings.bounds if bounds is None else bounds
        least, most = (-math.inf, math.inf) if given is None else given.returns(self.terms)
        reason = f"vacuous: it holds every possible return, {least:g} to {most:g}"
        return replace(
            found,
            low=low,
            high=high,
            assumptions=found.assumptions | {"folds": len(self.folds)},
            reason=reason if low <= least and high >= most else None,
        )


@dataclass(frozen=True)
class CrossFit:
    """The pooled evaluation, which has all that `evaluate` gives, and the folds behind it.

    >>> import offpolicy as op
    >>> from offpolicy.testing import Walk
    >>> walk = Walk()
    >>> log = walk.simulate(walk.behavior, n=300, seed=0)
    >>> cf = op.cross_fit(log, policy=walk.policies["eager"], domain=walk, estimators=["dr"])
    >>> cf.folds.select("fold", "episodes", "train_episodes", "estimator").rows()
    [(0, 155, 145, 'dr'), (1, 145, 155, 'dr')]
    >>> cf["dr"].value == cf.evaluation["dr"].value == cf.table["value"][0]
    True
    """

    evaluation: Evaluation
    parts: tuple[Fold, ...]

    @classmethod
    def pooled(cls, evaluation: Evaluation, parts: tuple[Fold, ...]) -> CrossFit:
        """Gives every estimate of the pooled evaluation those of the folds."""

        def with_folds(found: Estimate) -> PooledEstimate:
            each = tuple(part.find(found.policy, found.estimator) for part in parts)
            return PooledEstimate(**vars(found), folds=each)

        return cls(replace(evaluation, estimates=tuple(map(with_folds, evaluation.estimates))), parts)

    def __str__(self) -> str:
        """The evaluation, then the folds."""
        with pl.Config(tbl_cols=-1, tbl_rows=-1, tbl_width_chars=160, tbl_hide_dataframe_shape=True):
            return f"{self.evaluation}\n{self.folds}"

    def __getitem__(self, key: str | tuple[str, str]) -> Estimate:
        """A pooled estimate by estimator, or by policy and estimator."""
        return self.evaluation[key]

    @property
    def table(self) -> pl.DataFrame:
        """One row a pooled estimate."""
        return self.evaluation.table

    @property
    def verdict(self) -> Verdict:
        """Whether the weights can carry the pooled estimates."""
        return self.evaluation.verdict

    @property
    def notes(self) -> list[str]:
        """What else is to know."""
        return self.evaluation.notes

    @property
    def folds(self) -> pl.DataFrame:
        """One row a fold and estimate; a value that a fold cannot have alone is null."""
        schema = {
            "fold": pl.Int64,
            "policy": pl.String,
            "estimator": pl.String,
            "value": pl.Float64,
            "std_error": pl.Float64,
            "episodes": pl.Int64,
            "steps": pl.Int64,
            "train_episodes": pl.Int64,
        }
        rows = []
        for part in self.parts:
            for pooled in self.evaluation.estimates:
                found = part.find(pooled.policy, pooled.estimator)
                numbers = (found.value, found.std_error) if found else (None, None)
                size = (part.evaluation.episodes, part.evaluation.steps, part.train)
                rows.append((part.number, pooled.policy, pooled.estimator, *numbers, *size))
        return pl.DataFrame(rows, schema=schema, orient="row")

    def values(self, estimator: str, policy: str | None = None) -> pl.DataFrame:
        """Per-trajectory values, each with the model of the other folds; see `Evaluation.values`."""
        return self.evaluation.values(estimator, policy)

    def to_dict(self) -> dict[str, Any]:
        """The pooled evaluation with its provenance, and the folds, ready for JSON.

        >>> import offpolicy as op
        >>> from offpolicy.testing import Walk
        >>> walk = Walk()
        >>> log = walk.simulate(walk.behavior, n=50, seed=0)
        >>> found = op.cross_fit(log, policy=walk.behavior, domain=walk, estimators=["dr"]).to_dict()
        >>> found["settings"]["cross_fit"]["fitter"], len(found["folds"])
        ('tabular', 2)
        """
        return self.evaluation.to_dict() | {"folds": self.folds.to_dicts()}
