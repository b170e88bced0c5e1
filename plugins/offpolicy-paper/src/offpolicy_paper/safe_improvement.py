"""Fig. 4 of Jiang & Li (2016): the gain of safe policy improvement in Mountain Car, with IS and with DR.

For |D_train|/|D| of .2 to .8 the policy that is optimal in the model of D_train is mixed with π0 at rates 0 to .9. Each
mixture gets the score V − Cσ on the rest of D, with Q̂ from D_train, and the best is recommended if its score is above
V(π0), the mean return of D. A second panel has the worst policy of the model instead of the best. As in `op.improve`, a
candidate without a standard error, or without any weight at some step, has no score.

    gain = V(recommended) − V(π0)

Besides the paper's rule, `value`, every run also applies the paired rule of `op.improve`, `difference`: the same
candidates get the score D̄ − Cσ_D, where D_i = X_i − G_i is the value of trajectory i less its return, and the best is
recommended if its score is above 0. σ_D includes the error of the mean return of D, which the paper's rule leaves out.

With a reward of -1 per step, IS overestimates a policy whose weights vanish, because steps without weight seem to cost
nothing. With rewards r − R_min ≥ 0 it underestimates such a policy. IS of these rewards is DR-bsl with c = R_min up to
a constant, and serves here as a second reading of the paper's IS.

The paper gives neither the sizes of D, nor C, nor the number of runs; SIZES, CAUTIONS and RUNS are our choices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from offpolicy.annotation.annotate import annotate
from offpolicy.drivers.mixtures import ALPHAS, SPLITS
from offpolicy.drivers.split_log import Sides
from offpolicy.evaluation.difference import Difference
from offpolicy.evaluation.estimate import Estimate
from offpolicy.evaluation.evaluate import evaluate
from offpolicy.evaluation.result import Evaluation
from offpolicy.experiments.claims import Claim, every, greater, no_less
from offpolicy.experiments.estimates import cut
from offpolicy.experiments.runs_file import Run
from offpolicy.extensions import plugins
from offpolicy.logs.columns import Columns, PolicyColumns
from offpolicy.models.tabulation import exact_table
from offpolicy.policies import Mixture
from offpolicy.protocols import Domain, Floats, ModelFitter, Policy

from offpolicy_paper.mountain_car import rolled, spread_starts
from offpolicy_paper.splits import with_ratios

SIZES = (50, 100, 200, 500, 1000, 2000, 5000)
CAUTIONS = (0.0, 1.0, 2.0)
RUNS = 1000
ESTIMATORS = ("step-is", "dr-bsl", "dr")
#: Whether π_train is the best policy of its model (True) or the worst, by panel.
PANELS: Mapping[str, bool] = {"maximize": True, "minimize": False}
#: The paper's rule and the paired rule.
RULES = ("value", "difference")
#: The number of starts per axis for the value of a recommended policy; its random error averages out over runs.
SIDE = 40
#: Gains that differ by less, about 1% of V(π0), count as equally good.
MARGIN = 0.5

#: A panel, an estimator, and the indices of a caution and of a size.
Place = tuple[str, str, int, int]


@dataclass(frozen=True)
class SafeImprovement:
    """The experiment."""

    domain: Domain
    fitter: ModelFitter
    sizes: Sequence[int] = SIZES
    name: str = "safe-improvement"

    def settings(self) -> dict[str, Any]:
        """Return everything that the numbers depend on except the seed."""
        return {
            "domain": repr(self.domain),
            "fitter": repr(self.fitter),
            "sizes": list(self.sizes),
            "splits": list(SPLITS),
            "alphas": list(ALPHAS),
            "cautions": list(CAUTIONS),
            "estimators": list(ESTIMATORS),
            "rules": list(RULES),
            "side": SIDE,
        }

    def run(self, seed: np.random.SeedSequence) -> dict[str, Any]:
        """Return gains by rule, panel, estimator, C and |D|, and the recommended candidate's split and α, or None."""
        logged, *rolled = seed.spawn(1 + len(RULES))
        behavior = self.domain.behavior
        log = self.domain.simulate(behavior, self.sizes[-1], int(logged.generate_state(1, np.uint64)[0]))
        taken: dict[str, dict[Place, Policy]] = {rule: {} for rule in RULES}
        chosen = {rule: self._nothing(None) for rule in RULES}
        for s, size in enumerate(self.sizes):
            data = cut(log, size)[0]
            own = evaluate(data, estimators=["mc"], **self._settings)["mc"]
            least = {"value": own.value, "difference": 0.0}
            policies, found = self._candidates(data, size)
            for (rule, panel, estimator), (values, errors) in found.items():
                for c, caution in enumerate(CAUTIONS):
                    scores = np.nan_to_num(values - caution * errors, nan=-np.inf)
                    best = int(np.argmax(scores))
                    if scores[best] > least[rule]:
                        split, alpha = divmod(best, len(ALPHAS))
                        chosen[rule][panel][estimator][c][s] = [SPLITS[split], ALPHAS[alpha]]
                        taken[rule][panel, estimator, c, s] = policies[panel][best]
        known: dict[int, float] = {}
        for rule, stream in zip(RULES, rolled, strict=True):
            new = [policy for policy in taken[rule].values() if id(policy) not in known]
            truth = true_values(self.domain, [behavior, *new], stream)
            known = {key: value - truth[id(behavior)] for key, value in truth.items()} | known
        gains = {rule: self._nothing(0.0) for rule in RULES}
        for rule in RULES:
            for (panel, estimator, c, s), policy in taken[rule].items():
                gains[rule][panel][estimator][c][s] = known[id(policy)]
        return {"gains": gains, "chosen": chosen}

    def _nothing(self, kept: Any) -> dict[str, Any]:
        """Return the entries for recommending π0 everywhere, by panel, estimator, C and |D|."""
        return {
            panel: {name: [[kept for _ in self.sizes] for _ in CAUTIONS] for name in ESTIMATORS} for panel in PANELS
        }

    def _candidates(
        self, data: pl.DataFrame, size: int
    ) -> tuple[dict[str, list[Policy]], dict[tuple[str, str, str], tuple[Floats, Floats]]]:
        """Return the candidates of each panel by split, and for each rule their values or differences with errors."""
        policies: dict[str, list[Policy]] = {panel: [] for panel in PANELS}
        parts: dict[tuple[str, str, str], list[Floats]] = {key: [] for key in product(RULES, PANELS, ESTIMATORS)}
        for fraction in SPLITS:
            sides = Sides(*cut(data, round(fraction * size)), self.domain, threads=1)
            model, test = sides.fit(self.fitter), sides.test
            mixed: list[Policy] = []
            for panel, maximize in PANELS.items():
                best = model.optimal_policy(maximize=maximize)
                test = self._with_ratios(test, best, panel)
                policies[panel] += [Mixture(best, self.domain.behavior, alpha) for alpha in ALPHAS]
                mixed += policies[panel][-len(ALPHAS) :]
            names = [f"{panel} {alpha}" for panel in PANELS for alpha in ALPHAS]
            values = sides.values(model, mixed)
            columns = [PolicyColumns(ratio=name, q_hat=f"q {name}", v_hat=f"v {name}") for name in names]
            into = [replace(one, ratio=None) for one in columns]
            test = replace(sides, test=test).annotated(into, values=values)
            ev = evaluate(
                test,
                estimators=ESTIMATORS,
                policies=dict(zip(names, columns, strict=True)),
                baseline=self.domain.reward_range[0],
                paired=True,
                **self._settings,
            )
            for rule, panel, estimator in parts:
                keys = [(f"{panel} {alpha}", estimator) for alpha in ALPHAS]
                rows = [_scored(ev, rule, *key) for key in keys]
                scored = [(None, None) if row.withheld else (row.value, row.std_error) for row in rows]
                parts[rule, panel, estimator].append(np.array(scored, dtype=float))
        joined = {key: np.concatenate(rows) for key, rows in parts.items()}
        return policies, {key: (both[:, 0], both[:, 1]) for key, both in joined.items()}

    def _with_ratios(self, test: pl.DataFrame, policy: Policy, panel: str) -> pl.DataFrame:
        return with_ratios(annotate(test, policy, columns=Columns.of(self.domain), threads=1), ALPHAS, f"{panel} ")

    @property
    def _settings(self) -> dict[str, Any]:
        numbers = {"discount": self.domain.discount, "horizon": self.domain.horizon}
        return {**numbers, "threads": 1, "diagnostics": False}


def _scored(ev: Evaluation, rule: str, policy: str, estimator: str) -> Estimate | Difference:
    """Return the estimate that a rule scores: a policy's value, or its difference from the mean return."""
    return ev[policy, estimator] if rule == "value" else ev.difference(policy, estimator=estimator)


def true_values(domain: Any, policies: Sequence[Policy], seed: np.random.SeedSequence) -> dict[int, float]:
    """Return V of policies over the domain's cells, by `id`; each is rolled out once, and all together."""
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
    """Make the experiment in the domain with these options."""
    domain: Any = plugins.domain("mountain-car", **options)
    return SafeImprovement(domain, plugins.fitter("tabular"))


class Gains:
    """The gains of all runs."""

    def __init__(self, experiment: SafeImprovement, runs: Sequence[Run]) -> None:
        """Read the runs."""
        self.sizes = tuple(experiment.sizes)
        series = [
            (rule, panel, estimator, c, caution)
            for rule, panel, estimator in product(RULES, PANELS, ESTIMATORS)
            for c, caution in enumerate(CAUTIONS)
        ]
        self._by = {
            (rule, panel, estimator, caution): np.array([run["gains"][rule][panel][estimator][c] for run in runs])
            for rule, panel, estimator, c, caution in series
        }
        self._apart = {
            (rule, panel, estimator, caution): np.array(
                [[_share(one) for one in run["chosen"][rule][panel][estimator][c]] for run in runs]
            )
            for rule, panel, estimator, c, caution in series
        }

    def __call__(
        self, panel: str, estimator: str, caution: float, size: int | None = None, rule: str = "value"
    ) -> Floats:
        """Return the gain of each run, at one size or averaged over all sizes."""
        gains = self._by[rule, panel, estimator, caution]
        return gains.mean(axis=1) if size is None else gains[:, self.sizes.index(size)]

    def apart(self, panel: str, estimator: str, caution: float) -> Floats:
        """Return the share 1 - α of π_train in each run's recommended policy (0 for π0), averaged over sizes."""
        shares: Floats = self._apart["value", panel, estimator, caution].mean(axis=1)
        return shares

    def numbers(self) -> pl.DataFrame:
        """Return one row per point of the figure."""
        rows = []
        for (rule, panel, estimator, caution), gains in self._by.items():
            kept = (self._apart[rule, panel, estimator, caution] == 0).mean(axis=0)
            for i, (size, at_size) in enumerate(zip(self.sizes, gains.T, strict=True)):
                error = float(at_size.std(ddof=1) / np.sqrt(len(at_size))) if len(at_size) > 1 else None
                rows.append(
                    {
                        "rule": rule,
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


def _share(chosen: list[float] | None) -> float:
    """Return the share of π_train in the recommended policy."""
    return 0.0 if chosen is None else 1 - chosen[1]


def claims(gains: Gains) -> list[Claim]:
    """Return the paper's claims about Fig. 4 with both readings of its IS, and claims about the paired rule.

    Gains are means over all |D| unless a claim names one.
    """
    return [claim for rival in ("step-is", "dr-bsl") for claim in _claims(gains, rival)] + _paired_claims(gains)


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


def _paired_claims(gains: Gains) -> list[Claim]:
    """Return claims that compare the paired rule with the paper's.

    IS is `dr-bsl` here, because `op.improve` uses it in place of step-is if rewards are costs.
    """
    names = ("gain of the paired rule", "of the paper's")

    def both(panel: str, estimator: str, caution: float) -> tuple[Floats, Floats]:
        return gains(panel, estimator, caution, rule="difference"), gains(panel, estimator, caution)

    def no_worse(text: str, panel: str, estimator: str) -> Claim:
        parts = [no_less(f"C={c:g}", *both(panel, estimator, c), names, MARGIN) for c in CAUTIONS]
        return every(f"{text} at the same C ({estimator})", parts)

    more = [greater(f"C={c:g}", *both("maximize", "dr-bsl", c), names) for c in CAUTIONS[1:]]
    estimators = ("dr-bsl", "dr")
    return [
        *(no_worse("with bad candidates the paired rule is as safe as the paper's", "minimize", e) for e in estimators),
        *(no_worse("with good candidates the paired rule gains no less", "maximize", e) for e in estimators),
        every("with good candidates and C ≥ 1 the paired rule gains more than the paper's (dr-bsl)", more),
    ]
