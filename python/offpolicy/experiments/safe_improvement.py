"""Fig. 4 of Jiang & Li (2016): what safe policy improvement gains in Mountain Car, with IS and with DR.

For |D_train|/|D| of .2 to .8 the policy that is optimal in the model of D_train is mixed with π0 at rates 0 to .9; each
mixture is scored V − Cσ on the rest of D, with Q̂ from D_train, and the best is recommended if its score is above V(π0),
the mean return of D. A second panel has the worst policy of the model instead of the best. As in `op.improve`, a
candidate without a standard error, or without any weight at some step, has no score.

    gain = V(recommended) − V(π0)

A reward of -1 a step makes IS flatter a policy whose weights vanish: costs that nobody is seen to pay look spared. With
rewards counted from the lowest, r − R_min ≥ 0, they look missed instead. IS of these is DR-bsl with c = R_min, but for
a constant: the second reading of the paper's IS here.

The paper gives neither the sizes of D, nor C, nor the number of runs: SIZES, CAUTIONS and RUNS are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from offpolicy import plugins
from offpolicy.annotate import annotate
from offpolicy.columns import Columns, PolicyColumns
from offpolicy.evaluate import evaluate
from offpolicy.experiments.claims import Claim, every, greater, no_less
from offpolicy.experiments.mountain_car import rolled, spread_starts
from offpolicy.experiments.runs import Run
from offpolicy.experiments.splits import cut, with_ratios
from offpolicy.generators.mixture import ALPHAS, SPLITS
from offpolicy.policies import Mixture
from offpolicy.protocols import Domain, Floats, ModelFitter, Policy
from offpolicy.side_by_side import values_of
from offpolicy.tabulation import exact_table

SIZES = (50, 100, 200, 500, 1000, 2000, 5000)
CAUTIONS = (0.0, 1.0, 2.0)
RUNS = 1000
ESTIMATORS = ("step-is", "dr-bsl", "dr")
#: Is π_train the best policy of its model, or the worst?
PANELS: Mapping[str, bool] = {"maximize": True, "minimize": False}
#: Starts a side, for the value of a recommended policy; what chance adds averages out over runs.
SIDE = 40
#: Gains that differ by less are as good: about 1% of V(π0).
MARGIN = 0.5


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
            "estimators": list(ESTIMATORS),
            "side": SIDE,
        }

    def run(self, seed: np.random.SeedSequence) -> dict[str, Any]:
        """Gains by panel, estimator, C and |D|, and which candidate was recommended: its split and α, or none."""
        logged, rolled = seed.spawn(2)
        behavior = self.domain.behavior
        log = self.domain.simulate(behavior, self.sizes[-1], int(logged.generate_state(1, np.uint64)[0]))
        taken: dict[tuple[str, str, int, int], Policy] = {}
        chosen: dict[str, Any] = {
            panel: {name: [[None for _ in self.sizes] for _ in CAUTIONS] for name in ESTIMATORS} for panel in PANELS
        }
        for s, size in enumerate(self.sizes):
            data = cut(log, size)[0]
            own = evaluate(data, estimators=["mc"], **self._settings)["mc"]
            policies, found = self._candidates(data, size)
            for (panel, estimator), (values, errors) in found.items():
                for c, caution in enumerate(CAUTIONS):
                    scores = np.nan_to_num(values - caution * errors, nan=-np.inf)
                    best = int(np.argmax(scores))
                    if scores[best] > own.value:
                        split, alpha = divmod(best, len(ALPHAS))
                        chosen[panel][estimator][c][s] = [SPLITS[split], ALPHAS[alpha]]
                        taken[panel, estimator, c, s] = policies[panel][best]
        truth = true_values(self.domain, [behavior, *taken.values()], rolled)
        gains: dict[str, Any] = {
            panel: {name: [[0.0 for _ in self.sizes] for _ in CAUTIONS] for name in ESTIMATORS} for panel in PANELS
        }
        for (panel, estimator, c, s), policy in taken.items():
            gains[panel][estimator][c][s] = truth[id(policy)] - truth[id(behavior)]
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
            test = annotate(test, model=values, columns=Columns.of(self.domain), into=into, threads=1)
            ev = evaluate(
                test,
                estimators=ESTIMATORS,
                policies=dict(zip(names, columns, strict=True)),
                baseline=self.domain.reward_range[0],
                **self._settings,
            )
            for panel, estimator in parts:
                rows = [ev[f"{panel} {alpha}", estimator] for alpha in ALPHAS]
                scored = [(None, None) if row.withheld else (row.value, row.std_error) for row in rows]
                parts[panel, estimator].append(np.array(scored, dtype=float))
        joined = {key: np.concatenate(rows) for key, rows in parts.items()}
        return policies, {key: (both[:, 0], both[:, 1]) for key, both in joined.items()}

    def _with_ratios(self, test: pl.DataFrame, policy: Policy, panel: str) -> pl.DataFrame:
        return with_ratios(annotate(test, policy, columns=Columns.of(self.domain), threads=1), ALPHAS, f"{panel} ")

    @property
    def _settings(self) -> dict[str, Any]:
        numbers = {"discount": self.domain.discount, "horizon": self.domain.horizon}
        return {**numbers, "threads": 1, "diagnostics": False}


def true_values(domain: Any, policies: Sequence[Policy], seed: np.random.SeedSequence) -> dict[int, float]:
    """V of policies over the domain's cells, by `id`, each found once; all are rolled out together."""
    different = list({id(policy): policy for policy in policies}.values())
    tables = np.stack([_table(policy, domain) for policy in different])
    rng = np.random.default_rng(seed)
    starts = spread_starts(domain, SIDE, rng)
    which = np.repeat(np.arange(len(different)), len(starts))
    returns = rolled(
        domain,
        np.tile(starts, (len(different), 1)),
        lambda states, running, _: tables[which[running], domain.grid.index(states)],
        rng,
    )
    found = returns.reshape(len(different), -1).mean(axis=1)
    return {id(policy): float(value) for policy, value in zip(different, found, strict=True)}


def _table(policy: Policy, domain: Any) -> Floats:
    table = exact_table(policy, domain.grid, domain.actions)
    assert table is not None
    return table


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
        self._apart = {
            (panel, estimator, caution): np.array(
                [[0.0 if one is None else 1 - one[1] for one in run["chosen"][panel][estimator][c]] for run in runs]
            )
            for panel in PANELS
            for estimator in ESTIMATORS
            for c, caution in enumerate(CAUTIONS)
        }

    def __call__(self, panel: str, estimator: str, caution: float, size: int | None = None) -> Floats:
        """Of each run: at a size, or the mean over all sizes."""
        gains = self._by[panel, estimator, caution]
        return gains.mean(axis=1) if size is None else gains[:, self.sizes.index(size)]

    def apart(self, panel: str, estimator: str, caution: float) -> Floats:
        """How far from π0 the recommended policy is: its share of π_train, 1 - α, or 0; the mean over all sizes."""
        shares: Floats = self._apart[panel, estimator, caution].mean(axis=1)
        return shares

    def numbers(self) -> pl.DataFrame:
        """A row for each point of the figure."""
        rows = []
        for (panel, estimator, caution), gains in self._by.items():
            kept = (self._apart[panel, estimator, caution] == 0).mean(axis=0)
            for i, (size, at_size) in enumerate(zip(self.sizes, gains.T, strict=True)):
                error = float(at_size.std(ddof=1) / np.sqrt(len(at_size))) if len(at_size) > 1 else None
                rows.append(
                    {
                        "panel": panel,
                        "estimator": estimator,
                        "caution": caution,
                        "size": size,
                        "gain": float(at_size.mean()),
                        "gain_error": error,
                        "kept_behavior": float(kept[i]),
                    }
                )
        return pl.DataFrame(rows)


def claims(gains: Gains) -> list[Claim]:
    """What the paper says of Fig. 4, with both readings of its IS; gains are means over all |D| unless it names one."""
    return [claim for rival in ("step-is", "dr-bsl") for claim in _claims(gains, rival)]


def _claims(gains: Gains, rival: str) -> list[Claim]:
    good, bad, largest = partial(gains, "maximize"), partial(gains, "minimize"), gains.sizes[-1]
    apart, most, least = partial(gains.apart, "maximize"), CAUTIONS[-1], CAUTIONS[0]
    compared = [greater(f"C={c:g}", good("dr", c), good(rival, c), ("gain of DR", f"of {rival}")) for c in CAUTIONS]
    farther = [greater(f"C={c:g}", apart("dr", c), apart(rival, c), ("1-α of DR", f"of {rival}")) for c in CAUTIONS]
    best = [
        no_less(f"{name}, C={c:g}", good(name, least), good(name, c), ("gain at C=0", f"at C={c:g}"), MARGIN)
        for name in (rival, "dr")
        for c in CAUTIONS[1:]
    ]
    less_safe = [
        greater(name, bad(name, most), bad(name, least), (f"gain at C={most:g}", f"at C={least:g}"))
        for name in (rival, "dr")
    ]
    as_safe = [
        no_less(f"C={c:g}", bad("dr", c, largest), bad(rival, c, largest), ("gain of DR", f"of {rival}"), MARGIN)
        for c in CAUTIONS
    ]
    against = f"(IS: {rival})"
    return [
        every(f"with good candidates DR gains more than IS at the same C {against}", compared),
        every(f"with good candidates IS does not accept policies as far from π0 as DR does {against}", farther),
        every(f"with good candidates both gain most at C=0 {against}", best),
        every(f"with bad candidates a smaller C is less safe {against}", less_safe),
        every(f"with bad candidates DR is as safe as IS at the same C, at |D|={largest} {against}", as_safe),
    ]
