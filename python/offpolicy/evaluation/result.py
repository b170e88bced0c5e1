"""The result of an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from offpolicy import figures
from offpolicy._util.printing import readable
from offpolicy._util.scalars import shown, text
from offpolicy._util.visible import visible
from offpolicy.diagnostics import Diagnostics
from offpolicy.errors.kinds.of_evaluation import (
    ask_for_an_estimate,
    compared_with_the_log,
    logged_policy_itself,
    no_estimate,
    not_paired,
    several_policies,
)
from offpolicy.errors.kinds.of_logs import no_f64_holds_it
from offpolicy.evaluation.bounds import Range, Terms
from offpolicy.evaluation.cluster_verdict import judge_clusters
from offpolicy.evaluation.difference import Difference
from offpolicy.evaluation.estimate import Estimate, IntervalSettings
from offpolicy.evaluation.estimators import describe, is_known, named
from offpolicy.evaluation.outcome import Outcome, Quantity
from offpolicy.evaluation.plan import BEHAVIOR
from offpolicy.evaluation.verdict import Verdict, best, judge, judge_estimate, none_of, unweighted, worst
from offpolicy.figures.figure import Figure
from offpolicy.figures.judged import JudgedTable
from offpolicy.logs.trajectories import Samples


@dataclass(frozen=True)
class Evaluation:
    """The result of an evaluation: estimates, intervals, diagnostics and the verdict.

    >>> import offpolicy as op
    >>> ev = op.evaluate(op.demo_log(), discount=0.9, estimators=["step-is", "dr"])
    >>> ev.table.columns
    ['policy', 'estimator', 'value', 'std_error', 'low', 'high', 'episodes', 'steps', 'ess']
    >>> ev.episodes, ev.horizon, ev.verdict.level
    (2000, 10, 'reliable')
    """

    estimates: tuple[Estimate, ...]
    details: Diagnostics = field(repr=False)
    episodes: int
    steps: int
    horizon: int
    repairs: dict[str, Any]
    notes: list[str]
    settings: dict[str, Any]
    sources: list[dict[str, Any]]
    version: str
    samples: Samples = field(repr=False)
    paired: Mapping[tuple[str, str], Difference] | None = field(default=None, repr=False)
    #: The least and the most that rewards after the horizon can add to a value, where the task goes on.
    horizon_bias: Range | None = None

    def __str__(self) -> str:
        """Return the verdict, the table and the notes as text."""
        with pl.Config(tbl_cols=-1, tbl_rows=-1, tbl_width_chars=160, tbl_hide_dataframe_shape=True):
            return "\n".join([visible(str(self.verdict)), readable(self.table), *map(visible, self.notes)])

    def __getitem__(self, key: str | tuple[str, str]) -> Estimate:
        """Return the estimate of an estimator, or of a policy and an estimator."""
        asked = (None, key) if isinstance(key, str) else key
        if not (isinstance(asked, tuple) and len(asked) == 2 and all(isinstance(x, str | None) for x in asked)):
            raise ask_for_an_estimate(found=shown(key))
        policy, estimator = asked
        return self._find(policy, estimator, "ev[{policy!r}, {estimator!r}]")

    def _find(self, policy: str | None, estimator: str, call: str) -> Estimate:
        """Return an estimate, or raise an error that shows the right call if several policies have it."""
        found = [e for e in self.estimates if e.estimator == estimator and policy in (None, e.policy)]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(e.policy for e in found)
            asked = call.format(policy=found[0].policy, estimator=estimator)
            raise several_policies(estimator=repr(estimator), names=names, asked=asked)
        known = ", ".join(f"{e.policy}: {e.estimator}" for e in self.estimates)
        what = f"no estimate {estimator!r}" + (f" of policy {policy!r}" if policy else "")
        hint = "" if is_known(estimator) else f"; estimators are {', '.join(named())}"
        raise no_estimate(what=what, known=known, hint=hint)

    @property
    def clusters(self) -> int | None:
        """Return the number of clusters that the episodes come in, or None where they are taken as independent."""
        return None if self.samples.clusters is None else self.samples.clusters.count

    def difference(self, policy: str, against: str = BEHAVIOR, *, estimator: str) -> Difference:
        """Return how much more a policy earns than `against`, which must be "behavior", the logged policy.

        >>> import offpolicy as op
        >>> ev = op.evaluate(op.demo_log(), discount=0.9, estimators=["step-is"], paired=True)
        >>> gain = ev.difference("target", "behavior", estimator="step-is")
        >>> gain.std_error < ev["step-is"].std_error, gain.interval(0.95, "t", side="lower").low > 0
        (True, True)
        """
        if not isinstance(against, str) or against != BEHAVIOR:
            raise compared_with_the_log(behavior=repr(BEHAVIOR), found=repr(against))
        if isinstance(policy, str) and policy == BEHAVIOR:
            raise logged_policy_itself(behavior=repr(BEHAVIOR))
        estimate = self[policy, estimator]
        if self.paired is None:
            raise not_paired()
        return self.paired[estimate.key]

    @cached_property
    def table(self) -> pl.DataFrame:
        """Return a table with one row per estimate."""
        numbers = ("value", "std_error", "low", "high")
        schema = {
            "policy": pl.String,
            "estimator": pl.String,
            **dict.fromkeys(numbers, pl.Float64),
            "episodes": pl.Int64,
            "steps": pl.Int64,
            "ess": pl.Float64,
        }
        rows = [{name: getattr(estimate, name) for name in schema} for estimate in self.estimates]
        return pl.DataFrame(rows, schema=schema)

    @property
    def verdict(self) -> Verdict:
        """Return the verdict on the evaluation, which is the worst of those on its policies."""
        return worst(self.verdicts)

    @property
    def verdicts(self) -> list[Verdict]:
        """Return the verdict on each target policy, which is that on its best estimate."""
        found = []
        for policy in self.diagnostics["policy"]:
            own = [estimate for estimate in self.estimates if estimate.policy == policy]
            judged = {estimate.estimator: self.verdict_on(estimate) for estimate in own}
            weighted = {name: verdict for name, verdict in judged.items() if describe(name).uses_weights}
            found.append(best(weighted or judged) if judged else none_of(policy))
        return found

    def verdict_on(self, estimate: Estimate) -> Verdict:
        """Return the verdict on one estimate.

        >>> import offpolicy as op
        >>> ev = op.evaluate(op.demo_log(), discount=0.9)
        >>> ev.verdict_on(ev["is"]).level, ev.verdict_on(ev["dr"]).level
        ('fragile', 'reliable')
        """
        if not describe(estimate.estimator).uses_weights:
            return unweighted(estimate.policy)
        weights, row = self._weights[estimate.policy]
        concentration, skewness = self._shares[estimate.key]
        beyond = max(map(abs, self.horizon_bias or (0.0,)))
        if estimate.clusters is not None:
            return judge_clusters(judge_estimate(weights, row, estimate, 0.0, skewness, beyond), estimate)
        return judge_estimate(weights, row, estimate, concentration, skewness, beyond)

    @cached_property
    def _weights(self) -> dict[str, tuple[Verdict, dict[str, Any]]]:
        """Return the verdict on the weights of each target policy, with its row of the diagnostics."""
        rows = self.diagnostics.iter_rows(named=True)
        return {row["policy"]: (judge(row, self.episodes), row) for row in rows}

    @cached_property
    def _shares(self) -> dict[tuple[str, str], tuple[float | None, float | None]]:
        """Return the largest share of one trajectory in the variance of each estimate, and the skewness."""
        rows = self.leverage.select("policy", "estimator", "concentration", "skewness").iter_rows()
        return {(policy, estimator): (share, skewness) for policy, estimator, share, skewness in rows}

    @property
    def diagnostics(self) -> pl.DataFrame:
        """Return the table of `offpolicy.diagnostics` on the weights, with one row per target policy."""
        return self.details.policies

    @property
    def by_step(self) -> pl.DataFrame:
        """Return the effective sample size, mean weight and mean ratio at every step of each target policy.

        >>> import offpolicy as op
        >>> op.evaluate(op.demo_log(), discount=0.9).by_step.columns
        ['policy', 'step', 'running', 'ess', 'predicted_ess', 'mean_weight', 'mean_ratio', 'mean_squared_ratio']
        """
        return self.details.steps

    @property
    def leverage(self) -> pl.DataFrame:
        """Return how each estimate moves without the trajectories of largest weight, and with their weights capped."""
        return self.details.leverage

    @property
    def lengths(self) -> pl.DataFrame:
        """Return the number of episodes of each length."""
        return self.details.lengths

    def values(self, estimator: str, policy: str | None = None) -> pl.DataFrame:
        """Return the value of every trajectory in the columns `episode` and `value`; their mean is the estimate.

        This reads the log once more.

        >>> import offpolicy as op
        >>> ev = op.evaluate(op.demo_log(episodes=3), discount=0.9, estimators=["step-is"])
        >>> values = ev.values("step-is")
        >>> values["episode"].to_list(), abs(values["value"].mean() - ev["step-is"].value) < 1e-12
        ([0, 1, 2], True)
        """
        estimator = text("estimator", estimator)
        policy = None if policy is None else text("policy", policy)
        estimate = self._find(policy, estimator, "ev.values({estimator!r}, {policy!r})")
        return self.samples.values(estimate.policy, estimator)

    def figure(self, kind: str) -> Figure:
        """Draw the evaluation: `forest` has one row per policy and estimator, with interval and verdict.

        >>> import offpolicy as op
        >>> op.evaluate(op.demo_log(), discount=0.9).figure("forest").save("forest.svg")
        """
        verdict = self.verdict
        judged = JudgedTable(
            table=self.table,
            levels=[self._level(estimate) for estimate in self.estimates],
            level=verdict.level,
            rule=verdict.rule,
            advice=verdict.advice,
            episodes=self.episodes,
            confidence=self.settings["confidence"],
        )
        return figures.draw(judged, kind)

    def _level(self, estimate: Estimate) -> str | None:
        """Return the level of the verdict on an estimate; the behaviour policy's own value is observed and has none."""
        return None if estimate.policy == BEHAVIOR else self.verdict_on(estimate).level

    def to_dict(self) -> dict[str, Any]:
        """Return the whole result with its provenance, ready for JSON.

        >>> import offpolicy as op
        >>> sorted(op.evaluate(op.demo_log(episodes=10)).to_dict())[:4]
        ['by_step', 'clusters', 'diagnostics', 'episodes']
        """
        rows = self.table.to_dicts()
        for row, estimate in zip(rows, self.estimates, strict=True):
            row["reason"] = estimate.reason
            row["verdict"] = self._level(estimate)
            if self.paired is not None and estimate.policy != BEHAVIOR:
                found = self.paired[estimate.key]
                row["difference"] = {"against": found.against, "value": found.value, "std_error": found.std_error}
            if estimate.blend is not None:
                row["blend"] = {str(steps): share for steps, share in estimate.blend.items()}
            interval = estimate.own_interval
            about = ("method", "kind", "side", "assumptions", "caution")
            row["interval"] = {name: getattr(interval, name) for name in about}
        return {
            "version": self.version,
            "sources": self.sources,
            "settings": self.settings,
            "episodes": self.episodes,
            "steps": self.steps,
            "clusters": self.clusters,
            "horizon": self.horizon,
            "horizon_bias": None if self.horizon_bias is None else list(self.horizon_bias),
            "verdict": {
                "level": self.verdict.level,
                "rule": self.verdict.rule,
                "policy": self.verdict.policy,
                "advice": self.verdict.advice,
            },
            "estimates": rows,
            **self.details.to_dict(),
            "repairs": self.repairs,
            "notes": self.notes,
        }


def build(
    outcome: Outcome,
    policies: list[str],
    wanted: Callable[[str, str], bool],
    explicit: bool,
    terms: Callable[[str], Terms],
    settings: IntervalSettings,
    samples: Samples,
) -> tuple[tuple[Estimate, ...], list[str]]:
    """Return the estimates that the core found, and notes on those that f64 cannot hold."""
    episodes, weights_of, notes, estimates = outcome.episodes, outcome.weights, [], []
    for row in outcome.estimates:
        policy, estimator = policies[row.policy], row.estimator
        if not wanted(policy, estimator):
            continue
        weights = weights_of[row.policy]
        value, error, withheld = row.value.value, row.std_error, None
        std_error = _std_error(error) if error else None
        if value is None or (error and std_error is None):
            beyond = ("value", row.value) if value is None or error is None else ("standard error", error)
            what, log10 = beyond[0], beyond[1].log10
            withheld = f"the {what} of {estimator} for policy {policy!r} has log10 {log10:.1f}: no f64 can hold it"
            if explicit:
                raise no_f64_holds_it(what=withheld)
            notes.append(withheld)
        plain = policy == BEHAVIOR or not describe(estimator).uses_weights
        dead = None if plain else weights.dead_from
        if dead is not None and withheld is None:
            withheld = f"every weight of policy {policy!r} is zero from t = {dead} (counted from 1) on"
        estimates.append(
            Estimate(
                policy,
                estimator,
                value,
                std_error,
                episodes,
                outcome.steps,
                float(episodes) if plain else weights.ess,
                terms(policy),
                settings,
                samples,
                withheld,
                None if row.blend is None else dict(row.blend),
                row.extremes,
            )
        )
    return tuple(estimates), notes


def _std_error(error: Quantity) -> float | None:
    """Return a standard error as f64: 0 if it is below the range of f64, None if it is above."""
    return 0.0 if error.value is None and (error.log10 or 0.0) < 0 else error.value
