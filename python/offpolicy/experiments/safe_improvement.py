"""Fig. 4 of Jiang & Li (2016): what safe policy improvement gains in Mountain Car, with IS and with DR.

For |D_train|/|D| of .2 to .8 the policy that is optimal in the model of D_train is mixed with π0 at rates 0 to .9; each
mixture is scored V − Cσ on the rest of D, with Q̂ from D_train, and the best is recommended if its score is above V(π0),
the mean return of D. A second panel has the worst policy of the model instead of the best.

    gain = V(recommended) − V(π0)

The paper gives neither the sizes of D, nor C, nor the number of runs: SIZES, CAUTIONS and RUNS are ours.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from offpolicy import plugins
from offpolicy.annotate import annotate
from offpolicy.columns import Columns, PolicyColumns
from offpolicy.evaluate import evaluate
from offpolicy.experiments.claims import Claim, every, greater, no_less
from offpolicy.experiments.mountain_car import true_value
from offpolicy.experiments.runs import Run
from offpolicy.experiments.splits import cut
from offpolicy.generators.mixture import ALPHAS, SPLITS
from offpolicy.policies import Mixture
from offpolicy.protocols import Domain, Floats, ModelFitter, Policy
from offpolicy.side_by_side import values_of

SIZES = (50, 100, 200, 500, 1000, 2000, 5000)
CAUTIONS = (0.0, 1.0, 2.0)
RUNS = 1000
ESTIMATORS = ("step-is", "dr")
#: Is π_train the best policy of its model, or the worst?
PANELS: Mapping[str, bool] = {"maximize": True, "minimize": False}
#: Starts a side, for the value of a recommended policy; what chance adds averages out over runs.
SIDE = 40


@dataclass(frozen=True)
class SafeImprovement:
    """The experiment."""

    domain: Domain
    fitter: ModelFitter
    sizes: Sequence[int] = SIZES
    name: str = "safe-improvement"

    def settings(self) -> dict[str, Any]:
        """All that the numbers depend on but the seed."""
        return {
            "domain": repr(self.domain),
            "fitter": repr(self.fitter),
            "sizes": list(self.sizes),
            "splits": list(SPLITS),
            "alphas": list(ALPHAS),
            "cautions": list(CAUTIONS),
            "side": SIDE,
        }

    def run(self, seed: np.random.SeedSequence) -> dict[str, Any]:
        """Gains by panel, estimator, C and |D|, and which candidate was recommended: its split and α, or none."""
        logged, rolled = seed.spawn(2)
        behavior = self.domain.behavior
        log = self.domain.simulate(behavior, self.sizes[-1], int(logged.generate_state(1, np.uint64)[0]))
        truth = _Truth(self.domain, rolled)
        gains: dict[str, Any] = {p: {e: [[] for _ in CAUTIONS] for e in ESTIMATORS} for p in PANELS}
        chosen: dict[str, Any] = {p: {e: [[] for _ in CAUTIONS] for e in ESTIMATORS} for p in PANELS}
        for size in self.sizes:
            data = cut(log, size)[0]
            own = evaluate(data, discount=self.domain.discount, horizon=self.domain.horizon, estimators=["mc"])["mc"]
            policies, found = self._candidates(data, size)
            for panel in PANELS:
                for estimator in ESTIMATORS:
                    values, errors = found[panel, estimator]
                    for c, caution in enumerate(CAUTIONS):
                        scores = values - caution * errors
                        best = int(np.argmax(scores))
                        kept = not scores[best] > own.value
                        gain = 0.0 if kept else truth(policies[panel][best]) - truth(behavior)
                        gains[panel][estimator][c].append(gain)
                        split, alpha = divmod(best, len(ALPHAS))
                        chosen[panel][estimator][c].append(None if kept else [SPLITS[split], ALPHAS[alpha]])
        return {"gains": gains, "chosen": chosen}

    def _candidates(
        self, data: pl.DataFrame, size: int
    ) -> tuple[dict[str, list[Policy]], dict[tuple[str, str], tuple[Floats, Floats]]]:
        """The candidates of each panel, split after split, and their estimates and standard errors."""
        policies: dict[str, list[Policy]] = {panel: [] for panel in PANELS}
        parts: dict[tuple[str, str], list[Floats]] = {(p, e): [] for p in PANELS for e in ESTIMATORS}
        for fraction in SPLITS:
            train, test = cut(data, round(fraction * size))
            model = self.fitter.fit(train, self.domain)
            mixed: list[Policy] = []
            for panel, maximize in PANELS.items():
                best = model.optimal_policy(maximize=maximize)
                test = self._with_ratios(test, best, panel)
                policies[panel] += [Mixture(best, self.domain.behavior, alpha) for alpha in ALPHAS]
                mixed += policies[panel][-len(ALPHAS) :]
            names = [f"{panel} {alpha}" for panel in PANELS for alpha in ALPHAS]
            values = values_of(model, mixed, self.domain.horizon, self.domain.discount)
            columns = [PolicyColumns(ratio=name, q_hat=f"q {name}", v_hat=f"v {name}") for name in names]
            into = [replace(one, ratio=None) for one in columns]
            test = annotate(test, model=values, columns=self._states, into=into, threads=1)
            ev = evaluate(
                test,
                discount=self.domain.discount,
                horizon=self.domain.horizon,
                estimators=ESTIMATORS,
                policies=dict(zip(names, columns, strict=True)),
                threads=1,
            )
            for panel, estimator in parts:
                rows = [ev[f"{panel} {alpha}", estimator] for alpha in ALPHAS]
                parts[panel, estimator].append(np.array([(row.value, row.std_error) for row in rows], dtype=float))
        joined = {key: np.concatenate(rows) for key, rows in parts.items()}
        return policies, {key: (both[:, 0], both[:, 1]) for key, both in joined.items()}

    def _with_ratios(self, test: pl.DataFrame, policy: Policy, panel: str) -> pl.DataFrame:
        test = annotate(test, policy, columns=self._states, threads=1)
        rho = pl.col("target_prob") / pl.col("behavior_prob")
        return test.with_columns(((1 - alpha) * rho + alpha).alias(f"{panel} {alpha}") for alpha in ALPHAS)

    @property
    def _states(self) -> Columns:
        return Columns(state=tuple(self.domain.state_columns))


class _Truth:
    """True values of policies, each found once; all from the same random numbers, so that differences are sharp."""

    def __init__(self, domain: Domain, seed: np.random.SeedSequence) -> None:
        self.domain, self.seed = domain, seed
        self.found: dict[int, tuple[Policy, float]] = {}

    def __call__(self, policy: Policy) -> float:
        if id(policy) not in self.found:
            self.found[id(policy)] = policy, true_value(self.domain, policy, self.seed, SIDE)[0]
        return self.found[id(policy)][1]


def experiment(**options: Any) -> SafeImprovement:
    """The experiment, in the domain with these options."""
    domain: Any = plugins.domain("mountain-car", **options)
    return SafeImprovement(domain, plugins.fitter("tabular"))


class Gains:
    """The gains of all runs."""

    def __init__(self, experiment: SafeImprovement, runs: Sequence[Run]) -> None:
        """Reads the runs."""
        self.sizes = tuple(experiment.sizes)
        self._by = {
            (panel, estimator, caution): np.array([run["gains"][panel][estimator][c] for run in runs])
            for panel in PANELS
            for estimator in ESTIMATORS
            for c, caution in enumerate(CAUTIONS)
        }

    def __call__(self, panel: str, estimator: str, caution: float, size: int | None = None) -> Floats:
        """Of each run: at a size, or the mean over all sizes."""
        gains = self._by[panel, estimator, caution]
        return gains.mean(axis=1) if size is None else gains[:, self.sizes.index(size)]

    def numbers(self) -> pl.DataFrame:
        """A row for each point of the figure."""
        rows = []
        for (panel, estimator, caution), gains in self._by.items():
            for size, at_size in zip(self.sizes, gains.T, strict=True):
                error = float(at_size.std(ddof=1)) / np.sqrt(len(at_size)) if len(at_size) > 1 else 0.0
                rows.append(
                    {
                        "panel": panel,
                        "estimator": estimator,
                        "caution": caution,
                        "size": size,
                        "gain": float(at_size.mean()),
                        "gain_error": float(error),
                        "worse_than_behavior": float((at_size < 0).mean()),
                        "kept_behavior": float((at_size == 0).mean()),
                    }
                )
        return pl.DataFrame(rows)


def claims(gains: Gains) -> list[Claim]:
    """What the paper says of Fig. 4."""
    largest = gains.sizes[-1]
    both = [(caution, gains("maximize", "dr", caution), gains("maximize", "step-is", caution)) for caution in CAUTIONS]
    best = [
        greater(
            f"{estimator}, C={caution:g}",
            gains("maximize", estimator, 0.0),
            gains("maximize", estimator, caution),
            ("gain at C=0", f"at C={caution:g}"),
        )
        for estimator in ESTIMATORS
        for caution in CAUTIONS[1:]
    ]
    less_safe = [
        greater(
            f"{estimator}, C={more:g} against {less:g}",
            gains("minimize", estimator, more),
            gains("minimize", estimator, less),
            (f"gain at C={more:g}", f"at C={less:g}"),
        )
        for estimator in ESTIMATORS
        for less, more in itertools.pairwise(CAUTIONS)
    ]
    as_safe = [
        no_less(
            f"C={caution:g}",
            gains("minimize", "dr", caution, largest),
            gains("minimize", "step-is", caution, largest),
            ("gain of DR", "of IS"),
        )
        for caution in CAUTIONS
    ]
    return [
        every(
            "DR gains more than IS at the same C",
            [greater(f"C={caution:g}", dr, is_, ("gain of DR", "of IS")) for caution, dr, is_ in both],
        ),
        every("with good candidates IS and DR gain most at C=0", best),
        every("with bad candidates a smaller C is less safe", less_safe),
        every(f"with bad candidates DR is no less safe than IS at the same C, at |D|={largest}", as_safe),
    ]
