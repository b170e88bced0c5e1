"""One run of the comparison in Jiang & Li (2016), 6.1: the error of each estimator over |D_test|.

D_eval is split: the first |D_test| episodes are evaluated, and the model of REG and DR is fitted to the others. For
each α the target is (1-α) π_train + α π0, with π_train from separate data. 2-fold DR fits on each half and evaluates
the other.

REG is the mean of V̂(s_1) over the first states of the episodes to which its model was fitted. Estimates are cropped to
the range of possible returns; those of the two halves of 2-fold DR are cropped separately.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from offpolicy._util.mixing import mixed
from offpolicy.annotation.annotate import annotate
from offpolicy.drivers.split_log import Sides
from offpolicy.experiments.estimates import cut, estimated
from offpolicy.logs.columns import Columns, PolicyColumns
from offpolicy.policies import Mixture
from offpolicy.protocols import Domain, ModelFitter, Policy

ALPHAS = (0.0, 0.25, 0.5, 0.75)
ESTIMATORS = ("step-is", "step-wis", "dr", "dr-bsl")
#: The estimators that need no model.
MODEL_FREE = ("step-is", "step-wis", "dr-bsl")
#: The columns of ρ_t, by α.
RATIOS = [PolicyColumns(ratio=f"{alpha}") for alpha in ALPHAS]
Truth = Callable[[Domain, Policy, np.random.SeedSequence], tuple[float, float]]


@dataclass(frozen=True)
class Splits:
    """An experiment in a domain; `truth` gives the true value of a policy and its standard error."""

    name: str
    domain: Domain
    fitter: ModelFitter
    truth: Truth
    train: int
    sizes: Sequence[int]
    total: int
    baseline: float

    def settings(self) -> dict[str, Any]:
        """Return everything that the numbers depend on except the seed."""
        return {
            "domain": repr(self.domain),
            "fitter": repr(self.fitter),
            "train": self.train,
            "total": self.total,
            "sizes": list(self.sizes),
            "alphas": list(ALPHAS),
            "baseline": self.baseline,
        }

    def run(self, seed: np.random.SeedSequence) -> dict[str, Any]:
        """Return estimates by estimator, size and α, and the truth by α."""
        trained, evaluated, rolled = seed.spawn(3)
        domain, behavior = self.domain, self.domain.behavior
        best = self.fitter.fit(self._log(self.train, trained), domain).optimal_policy()
        targets = [Mixture(best, behavior, alpha) for alpha in ALPHAS]
        truths = [
            self.truth(domain, target, stream)
            for target, stream in zip(targets, rolled.spawn(len(ALPHAS)), strict=True)
        ]
        log = self._log(self.total, evaluated)
        scored = with_ratios(annotate(log, best, columns=Columns.of(self.domain), threads=1), ALPHAS)
        found: dict[str, list[list[float]]] = {name: [] for name in (*ESTIMATORS, "reg")}
        for size in self.sizes:
            by_alpha, reg = self._estimates(*cut(scored, size), targets, ESTIMATORS)
            for name in ESTIMATORS:
                found[name].append(by_alpha[name])
            found["reg"].append(reg)
        halves = cut(scored, self.total // 2)
        folds = [self._estimates(*pair, targets, ("dr",))[0]["dr"] for pair in (halves, halves[::-1])]
        return {
            "estimates": found,
            "on_all": self._cropped(scored, RATIOS, MODEL_FREE),
            "two_fold_dr": np.mean(folds, axis=0).tolist(),
            "truth": [value for value, _ in truths],
            "truth_error": [error for _, error in truths],
        }

    def _log(self, episodes: int, seed: np.random.SeedSequence) -> pl.DataFrame:
        return self.domain.simulate(self.domain.behavior, episodes, int(seed.generate_state(1, np.uint64)[0]))

    def _estimates(
        self, test: pl.DataFrame, rest: pl.DataFrame, targets: Sequence[Policy], estimators: Sequence[str]
    ) -> tuple[dict[str, list[float]], list[float]]:
        """Return, for each target, the estimates on `test` with the model of `rest`, and those of the model alone."""
        sides = Sides(rest, test, self.domain, threads=1)
        values = sides.values(sides.fit(self.fitter), targets)
        columns = [replace(ratio, q_hat=f"q {ratio.ratio}", v_hat=f"v {ratio.ratio}") for ratio in RATIOS]
        into = [replace(names, ratio=None) for names in columns]
        cropped = self._cropped(sides.annotated(into, values=values), columns, estimators)
        first = rest.filter(pl.col("step") == 0).select(self.domain.state_columns).to_numpy()
        return cropped, [self._crop(float(value.v_hat(first, 0).mean())) for value in values]

    def _cropped(
        self, log: pl.DataFrame, columns: Sequence[PolicyColumns], estimators: Sequence[str]
    ) -> dict[str, list[float]]:
        """Return cropped estimates by estimator and α."""
        policies = dict(zip(map(str, ALPHAS), columns, strict=True))
        settings: dict[str, Any] = {"discount": self.domain.discount, "horizon": self.domain.horizon}
        settings |= {"baseline": self.baseline, "threads": 1, "passes": 1}
        found = estimated(log, policies, estimators, settings)
        return {name: [self._crop(found[policy, name]) for policy in policies] for name in estimators}

    def _crop(self, value: float) -> float:
        """Crop a value to the range of possible returns, as the paper does."""
        total = sum(self.domain.discount**t for t in range(self.domain.horizon))
        low, high = (bound * total for bound in self.domain.reward_range)
        return min(max(value, low), high)


def with_ratios(log: pl.DataFrame, alphas: Sequence[float], prefix: str = "") -> pl.DataFrame:
    """Add ρ_t of (1-α)π + απ0 in one column per α, named by it; `target_prob` is that of π."""
    rho = pl.col("target_prob") / pl.col("behavior_prob")
    return log.with_columns(mixed(alpha, rho).alias(f"{prefix}{alpha}") for alpha in alphas)
