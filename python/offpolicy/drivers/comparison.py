"""The paper's comparison in any domain with a simulator: the error of each estimator by the size of the data D.

A run simulates the behaviour policy once; the first n episodes are the data of size n. Estimators that need Q̂ or R̂ get
them by cross-fitting: the model of a part is fitted to the other parts. An estimator that is a Python function gets the
same columns.

    RMSE = √(mean over runs of (estimate - V)²),    bias = mean of (estimate - V)

If no trajectory has any weight left, the later steps count as 0 in a weighted estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from offpolicy._util.scalars import is_number
from offpolicy.annotation.annotate import annotate
from offpolicy.annotation.annotator import MODELLED
from offpolicy.drivers.arguments import described
from offpolicy.drivers.split_log import Sides
from offpolicy.errors.kinds.of_drivers import estimate_not_finite
from offpolicy.evaluation.estimators import describe
from offpolicy.evaluation.evaluate import evaluate
from offpolicy.experiments.estimates import cut, estimated
from offpolicy.logs.columns import Columns, PolicyColumns
from offpolicy.protocols import Domain, ModelFitter, Policy

#: The first of the two numbers that key the random streams of the truth; the streams of runs are keyed by one number.
TRUTH = 0
#: A function of the rows of a log, sorted by episode and step, with the columns that `evaluate` reads and `ratio`.
EstimateFunction = Callable[[pl.DataFrame], float]


@dataclass(frozen=True)
class Comparison:
    """An experiment: target policies, estimators by id and by function, and sizes of D."""

    domain: Domain
    policies: Mapping[str, Policy]
    estimators: Sequence[str]
    functions: Mapping[str, EstimateFunction]
    sizes: Sequence[int]
    fitter: ModelFitter | None
    folds: int
    baseline: float | None = None
    name: str = "comparison"

    def settings(self) -> dict[str, Any]:
        """Return everything that the numbers depend on, except the seed."""
        return {
            "domain": described(self.domain),
            "policies": list(self.policies),
            "estimators": [*self.estimators, *self.functions],
            "sizes": list(self.sizes),
            "fitter": None if self.fitter is None else described(self.fitter),
            "folds": self.folds,
            "baseline": self.baseline,
        }

    def run(self, seed: np.random.SeedSequence) -> dict[str, Any]:
        """Return the estimates of one run, by size, policy and estimator."""
        number = int(seed.generate_state(1, np.uint64)[0])
        log = self.domain.simulate(self.domain.behavior, max(self.sizes), number)
        into = [PolicyColumns(target_prob=f"p {i}") for i in range(len(self.policies))]
        log = annotate(log, list(self.policies.values()), columns=Columns.of(self.domain), into=into, threads=1)
        return {"estimates": [self._estimates(cut(log, size)[0], size) for size in self.sizes]}

    def _estimates(self, log: pl.DataFrame, size: int) -> dict[str, dict[str, float]]:
        if self.fitter is not None:
            log = pl.concat([self._part(log, size, part, self.fitter) for part in range(self.folds)])
        columns = {name: PolicyColumns(target_prob=f"p {i}") for i, name in enumerate(self.policies)}
        if self.fitter is not None:
            columns = {
                name: replace(of, q_hat=f"q {i}", v_hat=f"v {i}", r_hat=f"r {i}")
                for i, (name, of) in enumerate(columns.items())
            }
        settings: dict[str, Any] = {"discount": self.domain.discount, "horizon": self.domain.horizon}
        passes = max((describe(estimator).value_pass for estimator in self.estimators), default=1)
        settings |= {"baseline": self.baseline, "threads": 1, "passes": passes}
        found = estimated(log, columns, self.estimators, settings) if self.estimators else {}
        return {
            name: {estimator: found[name, estimator] for estimator in self.estimators}
            | {called: self._call(called, log, of) for called in self.functions}
            for name, of in columns.items()
        }

    def _part(self, log: pl.DataFrame, size: int, part: int, fitter: ModelFitter) -> pl.DataFrame:
        """Return the episodes of a part, annotated with the model of the other parts."""
        first, last = (size * edge // self.folds for edge in (part, part + 1))
        sides = Sides.by_episodes(log, first, last, self.domain, threads=1)
        values = sides.values(sides.fit(fitter), list(self.policies.values()))
        numbers = range(len(values))
        together = [PolicyColumns(q_hat=f"q {i}", v_hat=f"v {i}") for i in numbers]  # one look-up serves both
        rewards = [PolicyColumns(r_hat=f"r {i}") for i in numbers]
        annotated: pl.DataFrame = sides.annotated([*together, *rewards], values=[*values, *values])
        return annotated

    def _call(self, called: str, log: pl.DataFrame, of: PolicyColumns) -> float:
        named = {role: name for role in ("target_prob", *MODELLED) if (name := getattr(of, role)) is not None}
        rows = log.select(
            *("episode", "step", "reward", "behavior_prob", *self.domain.state_columns, "action"),
            *(pl.col(name).alias(role) for role, name in named.items()),
            (pl.col(named["target_prob"]) / pl.col("behavior_prob")).alias("ratio"),
        )
        value = self.functions[called](rows)
        if not is_number(value) or not np.isfinite(value):
            raise estimate_not_finite(name=repr(called), found=repr(value))
        return float(value)


def true_values(
    domain: Domain, policies: Mapping[str, Policy], episodes: int, seed: int
) -> dict[str, tuple[float, float]]:
    """Return V of each policy and its standard error, exactly if the domain has `value`, else by simulation."""
    found = {}
    for i, (name, policy) in enumerate(policies.items()):
        exact: Callable[[Policy], float] | None = getattr(domain, "value", None)
        if exact is not None:
            found[name] = float(exact(policy)), 0.0
            continue
        stream = np.random.SeedSequence(seed, spawn_key=(TRUTH, i))
        log = domain.simulate(policy, episodes, int(stream.generate_state(1, np.uint64)[0]))
        mc = evaluate(log, discount=domain.discount, horizon=domain.horizon, estimators=["mc"])["mc"]
        assert mc.value is not None
        assert mc.std_error is not None
        found[name] = mc.value, mc.std_error
    return found


def needs_model(estimators: Sequence[str]) -> bool:
    """Return whether any of these estimators needs Q̂, V̂ or R̂."""
    return any(set(describe(estimator).needs) & set(MODELLED) for estimator in estimators)
