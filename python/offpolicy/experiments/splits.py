"""One run of the paper's comparison, Jiang & Li (2016), 6.1: how far each estimator is from the truth, over |D_test|.

D_eval is split: the first |D_test| episodes are evaluated, the others fit the model of REG and DR. For each α the
target is (1-α) π_train + α π0, with π_train from data of its own. 2-fold DR fits on each half and evaluates the other.

REG is the mean of V̂(s_1) over the first states of the episodes that its model was fitted to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from offpolicy.annotate import annotate
from offpolicy.columns import Columns, PolicyColumns
from offpolicy.estimators import WEIGHTED
from offpolicy.evaluate import NoWeightError, evaluate
from offpolicy.policies import Mixture
from offpolicy.protocols import Domain, Floats, ModelFitter, Policy

ALPHAS = (0.0, 0.25, 0.5, 0.75)
ESTIMATORS = ("step-is", "step-wis", "dr", "dr-bsl")
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
        """All that the numbers depend on but the seed."""
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
        """Estimates by estimator, size and α, and the truth by α."""
        trained, evaluated, rolled = seed.spawn(3)
        domain, behavior = self.domain, self.domain.behavior
        best = self.fitter.fit(self._log(self.train, trained), domain).optimal_policy()
        targets = [Mixture(best, behavior, alpha) for alpha in ALPHAS]
        truths = [self.truth(domain, target, stream) for target, stream in zip(targets, rolled.spawn(4), strict=True)]
        log = self._log(self.total, evaluated)
        scored = annotate(log, targets[0], columns=Columns(state=tuple(domain.state_columns)))
        rho = pl.col("target_prob") / pl.col("behavior_prob")
        scored = scored.with_columns(((1 - alpha) * rho + alpha).alias(f"ratio {alpha}") for alpha in ALPHAS)
        found: dict[str, list[list[float]]] = {name: [] for name in (*ESTIMATORS, "reg")}
        for size in self.sizes:
            inside = pl.col("episode") < size
            test, rest = scored.filter(inside), scored.filter(~inside)
            by_alpha, reg = self._estimates(test, rest, targets, ESTIMATORS)
            for name in ESTIMATORS:
                found[name].append(by_alpha[name])
            found["reg"].append(reg)
        half = pl.col("episode") < self.total // 2
        halves = [scored.filter(half), scored.filter(~half)]
        folds = [self._estimates(halves[i], halves[1 - i], targets, ("dr",))[0]["dr"] for i in range(2)]
        return {
            "estimates": found,
            "two_fold_dr": np.mean(folds, axis=0).tolist(),
            "truth": [value for value, _ in truths],
            "truth_error": [error for _, error in truths],
        }

    def _log(self, episodes: int, seed: np.random.SeedSequence) -> pl.DataFrame:
        return self.domain.simulate(self.domain.behavior, episodes, int(seed.generate_state(1, np.uint64)[0]))

    def _estimates(
        self, test: pl.DataFrame, rest: pl.DataFrame, targets: Sequence[Policy], estimators: Sequence[str]
    ) -> tuple[dict[str, list[float]], list[float]]:
        """Of each target: what the estimators say on `test` with the model of `rest`, and what the model says alone."""
        horizon, discount = self.domain.horizon, self.domain.discount
        model: Any = self.fitter.fit(rest, self.domain)
        values = model.values_of(targets, horizon, discount)
        policies: dict[str, PolicyColumns] = {}
        for i, (target, value, alpha) in enumerate(zip(targets, values, ALPHAS, strict=True)):
            q, v = f"q {alpha}", f"v {alpha}"
            test = annotate(test, target, value, into=PolicyColumns(q_hat=q, v_hat=v), threads=1)
            policies[str(i)] = PolicyColumns(ratio=f"ratio {alpha}", q_hat=q, v_hat=v)
        plain = [name for name in estimators if name not in WEIGHTED]
        settings: dict[str, Any] = {"discount": discount, "horizon": horizon, "threads": 1, "passes": 1}
        settings["baseline"] = self.baseline
        ev = evaluate(test, policies=policies, estimators=plain, **settings)
        cropped = {name: [self._crop(ev[policy, name].value) for policy in policies] for name in plain}
        for name in set(estimators) & WEIGHTED:
            cropped[name] = [self._crop(weighted(test, name, columns, settings)) for columns in policies.values()]
        first = rest.filter(pl.col("step") == 0).select(self.domain.state_columns).to_numpy()
        return cropped, [self._crop(float(value.v_hat(first, 0).mean())) for value in values]

    def _crop(self, value: float | None) -> float:
        """Into the range of possible returns, as the paper does."""
        assert value is not None
        total = sum(self.domain.discount**t for t in range(self.domain.horizon))
        low, high = (bound * total for bound in self.domain.reward_range)
        return min(max(value, low), high)


def weighted(log: pl.DataFrame, estimator: str, columns: PolicyColumns, settings: dict[str, Any]) -> float:
    """A ratio of sums; steps from which on no trajectory has any weight count 0, where it is not defined."""
    try:
        ev = evaluate(log, policies={"target": columns}, estimators=[estimator], **settings)
    except NoWeightError as error:
        before = log.filter(pl.col("step") < error.step - 1)
        return weighted(before, estimator, columns, settings) if before.height else 0.0
    value = ev[estimator].value
    assert value is not None
    return value


def relative_rmse(estimates: Floats, truths: Floats, truth_errors: Floats) -> tuple[float, float]:
    """Root of the mean squared relative error over runs, and its Monte-Carlo error.

    What the error of the truth itself adds to the squares is taken off.
    """
    squares = (np.square(estimates - truths) - np.square(truth_errors)) / np.square(truths)
    mean, error = float(squares.mean()), float(squares.std(ddof=1)) / np.sqrt(len(squares))
    root = float(np.sqrt(max(mean, 0.0)))
    return root, float(error / (2 * root)) if root > 0 else float("inf")
