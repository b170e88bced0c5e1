"""From a log to estimates: one scan, or two where a standard error needs the normalisers first."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from offpolicy import _core, intervals
from offpolicy._util import scalars
from offpolicy._util.polars_calls import naming_the_log
from offpolicy._util.probabilities import renormalised
from offpolicy.annotation.annotated_logs import Counting
from offpolicy.diagnostics import BY_STEP, Diagnostics
from offpolicy.errors import MemoryLimitError, OffPolicyError, UsageError
from offpolicy.evaluation.bounds import Bounds, Terms
from offpolicy.evaluation.difference import Difference
from offpolicy.evaluation.estimate import Estimate, IntervalSettings
from offpolicy.evaluation.estimators import BLENDED, WEIGHTED, check_ids
from offpolicy.evaluation.memory import limit
from offpolicy.evaluation.passes import MapFunction, ProgressFunction, Scanner
from offpolicy.evaluation.plan import BEHAVIOR, Plan, Settings, choose_estimators, find_policies, left_out
from offpolicy.evaluation.result import Evaluation, build
from offpolicy.evaluation.std_errors import by_cluster, scored_log, with_estimated_behavior
from offpolicy.logs.clusters import SOMEBODY, Clusters, hints
from offpolicy.logs.columns import SCORE, Columns, PolicyColumns
from offpolicy.logs.log_probabilities import LogRatios
from offpolicy.logs.sort import tidy
from offpolicy.logs.sources import Source, open_log
from offpolicy.logs.trajectories import Samples
from offpolicy.logs.truncation import Cut, check_mended, mend, with_checks


@naming_the_log
def evaluate(
    log: Any,
    *,
    discount: float = 1.0,
    estimators: Sequence[str] | None = None,
    columns: Columns | None = None,
    policies: Mapping[str, PolicyColumns] | None = None,
    horizon: int | None = None,
    confidence: float = 0.95,
    interval: str = "t",
    baseline: float | None = None,
    cluster: str | None = None,
    map: MapFunction | None = None,
    progress: ProgressFunction | None = None,
    threads: int | None = None,
    bounds: Bounds | None = None,
    density: bool = False,
    order: str = "sorted",
    dedupe: str | None = None,
    truncation: str | None = None,
    batch_rows: int | None = None,
    passes: int = 2,
    diagnostics: bool = True,
    paired: bool = False,
    continuing: bool = False,
    memory: int | str | None = None,
) -> Evaluation:
    """What the target policies would have earned, from the log alone.

    Parameters
    ----------
    log
        A Polars frame or lazy frame; a Parquet path, glob or folder, or a list of them; a pyarrow table, dataset or
        reader; a DuckDB relation; a pandas frame; any object with `__arrow_c_stream__`. Rows are sorted by episode and
        step. A lazy frame is read by Polars, which holds at least one row group of a Parquet file: a file of few large
        ones takes less memory by its path.
    discount
        γ, from 0 to 1.
    estimators
        Ids such as `"step-is"`, `"dr"`; None for all that the columns allow.
    columns, policies
        Names of the columns, and of those of several target policies.
    horizon
        H; None for the length of the longest episode.
    confidence, interval, bounds
        Level and method of the intervals (see `offpolicy.intervals`; `"auto"` takes one that fits), and what is known
        for certain of rewards, ratios and model values.
    baseline
        The constant of `dr-bsl`.
    cluster
        A column that is constant in each episode, such as `"user"`, where episodes with the same value may depend on
        each other: standard errors and intervals are then those of clusters (`offpolicy.logs.clusters`), and intervals
        that need independent episodes are withheld. Each estimate costs one more scan, and memory grows with the
        episodes.
    map
        Runs the parts of the scan elsewhere: `executor.map`, or anything that works like it. Intervals that are made of
        the values of single trajectories use it again when they are first asked for; those that need weights or rewards
        by step (`likelihood`; of `wis`, `step-wis` and `wdr` the bootstrap, and `t` and `t-skew` up to a million steps)
        read the log here.
    progress
        Called with the rows done so far and those of the log (None if not known). Where the log is read twice, a row is
        half done after the first time.
    threads
        None for all cores.
    density
        Probabilities are densities, which may exceed 1.
    order, dedupe
        `order="any"` sorts the log first; `dedupe="identical"` sorts it too and drops rows that are there twice. Both
        use Polars, whose threads a fork does not copy: start processes by "spawn" or "forkserver".
    truncation
        `"as-terminal"` takes episodes that were cut off as ended; `"bootstrap"` adds what the model expects of their
        later steps, and needs `q_hat` and `r_hat`; `"reduce-horizon"` evaluates the first steps that all of them have.
    batch_rows
        Rows a batch where the log is streamed.
    passes
        1 to read the log once only, without `magic` and without the standard errors of `step-wis` and `wdr`; `dr-bsl`
        then needs `horizon`, and no weighted estimate is called reliable.
    diagnostics
        False for the effective sample size alone, a little faster: the verdict then rests on less.
    paired
        True to compare each policy with the logged one, trajectory by trajectory, in the same scan:
        `ev.difference("target", "behavior", estimator="dr")`.
    continuing
        True where the task goes on after H steps, and its whole value is wanted: `horizon_bias` of the result is the
        range of what later rewards add, γ^H r / (1 − γ) with r in `bounds.reward`. It needs both, and γ < 1.
    memory
        Bytes that may be taken for what grows with the log, as a number or a text such as `"2GB"`; None for half of
        what is available. A log that needs more is refused with `MemoryLimitError`, which says how much. A step of the
        longest episode takes 33 bytes for each sum over episodes (seven sums for all estimators of a policy with
        diagnostics), once in each thread, and up to 144 more for each policy when the log has been read; an episode
        takes 28 bytes, and none where its id follows the one before; ids beyond half of the limit go to temporary
        files. Batches that are being read, and what Polars takes, come on top.

    Examples
    --------
    >>> import offpolicy as op
    >>> ev = op.evaluate(op.demo_log(), discount=0.9, estimators=["step-is", "step-wis", "dr"])
    >>> abs(ev["dr"].value - op.demo_value()) < 3 * ev["dr"].std_error
    True
    """
    intervals.check(interval, confidence)
    scalars.choice("order", order, ("sorted", "any"))
    scalars.choice("dedupe", dedupe, (None, "identical"))
    passes = scalars.whole("passes", passes, 1, limit=2)
    threads, batch_rows = scalars.threads(threads), scalars.size("batch_rows", batch_rows)
    check_types(columns, policies, bounds)
    settings = Settings(discount, horizon, baseline, density, truncation)
    discount, horizon, baseline, density = settings.discount, settings.horizon, settings.baseline, settings.density
    diagnostics, paired = scalars.flag("diagnostics", diagnostics), scalars.flag("paired", paired)
    continuing = scalars.flag("continuing", continuing)
    check_cluster(cluster, passes)
    check_paired(paired, cluster, truncation)
    most = limit(memory)
    check_continuing(continuing, discount, bounds)
    counting = Counting.of(log)
    source = open_log(log)
    columns = (columns or Columns()).with_estimates(source.columns)
    asked, named = columns, policies
    if (logs := LogRatios.of(source.columns, columns, policies)) is not None:
        columns, policies = logs.columns, logs.policies
    available = [*source.columns, *(logs.pairs if logs else [])]
    plan = make_plan(available, columns, policies, settings, estimators)
    plan = replace(plan, diagnostics=diagnostics, paired=paired, memory=most)
    _check_baseline(plan)
    repairs: dict[str, Any] = {}
    remarks = [] if estimators is not None else left_out(plan)
    estimated = plan.estimated
    if passes == 1:
        plan = _for_one_pass(plan, estimators is not None, remarks)
    files = source.files()
    if logs is not None:
        source = logs.written(source, asked, [*plan.names(), *_beside(source, plan, cluster)], density)
    if order == "any" or dedupe:
        names = [*plan.names(), *_beside(source, plan, cluster)]
        source, removed = tidy(source, list(dict.fromkeys(names)), plan.columns, dedupe == "identical")
        repairs["sorted"] = True
        if dedupe:
            repairs["duplicates_removed"] = removed
            remarks.append(f"{removed} repeated rows were dropped")
    scanner = Scanner(source, threads or os.cpu_count() or 1, batch_rows, map, progress, plan, passes)
    first = scanner.scan(with_checks(plan), "first", None)
    if counting.rows:
        repairs["renormalised"] = counting.rows
        remarks += renormalised(counting.rows)
    clusters = None if cluster is None else Clusters.read(source, plan.columns, cluster, first.episodes)
    remarks += _about_clusters(source, plan, clusters, passes)
    taken = None
    if truncation and first.truncated:
        cut, beside = Cut(first.truncated, first.shortest_truncated or 0), _beside(source, plan, cluster)
        with source.unchanged():
            mended = mend(source, plan, cut, estimators is not None, beside)
        repairs |= mended.repairs
        remarks += mended.remarks
        taken = mended.taken
        if mended.source is not source:
            plan = mended.plan
            before = scanner.reading
            scanner = Scanner(mended.source, scanner.threads, batch_rows, map, progress, plan, passes)
            first = scanner.scan(plan, "first", None)
            check_mended(before, scanner.reading, plan, source.name)
    if estimators is None:
        plan, first = _without_dead_policies(scanner, plan, first, remarks)
    names = [BEHAVIOR, *(policy.name for policy in plan.policies)]
    normalisers = _normalisers(first, names)
    again = first.needs_second_pass and passes == 2
    second = scanner.scan(plan.second(), "second", normalisers) if again else None
    outcome = _outcome(first, normalisers, second)
    shortest, longest_seen = outcome["lengths"][0][0], horizon is None
    terms = Terms(discount, outcome["horizon"], baseline, longest_seen, shortest=shortest, mended=taken)
    samples = Samples(
        scanner.again, scanner.source, plan, normalisers, clusters, passes, scanner.crossing, scanner.reading
    )
    beyond = bounds.remainder(terms) if continuing and bounds is not None else None
    if beyond is not None:
        remarks.append(_goes_on(outcome["horizon"], *beyond))
    ratios = {policy.name for policy in plan.policies if "transition_ratio" in policy.models}
    found, notes = build(
        outcome,
        names,
        lambda policy, _: policy != BEHAVIOR or plan.mc,
        estimators is not None,
        lambda policy: replace(terms, transition_ratio=policy in ratios, estimated=estimated and policy != BEHAVIOR),
        IntervalSettings(confidence, interval, bounds),
        samples,
    )
    if clusters is not None:
        found = by_cluster(found, samples)
    if estimated:
        found, remark = with_estimated_behavior(found, samples, scored_log(plan, samples, outcome["steps"]), passes)
        remarks.append(remark)
    source.check_unchanged()
    return Evaluation(
        estimates=found,
        details=Diagnostics(outcome, dict(enumerate(names[1:], start=1))),
        episodes=outcome["episodes"],
        steps=outcome["steps"],
        horizon=outcome["horizon"],
        repairs=repairs,
        notes=remarks + notes,
        settings={
            "discount": discount,
            "estimators": list(dict.fromkeys(estimate.estimator for estimate in found)),
            "horizon": horizon,
            "confidence": confidence,
            "interval": interval,
            "baseline": baseline,
            "cluster": cluster,
            "density": density,
            "order": order,
            "dedupe": dedupe,
            "truncation": truncation,
            "passes": passes,
            "diagnostics": diagnostics,
            "paired": paired,
            "continuing": continuing,
            "columns": asdict(asked),
            "behavior": "estimated" if estimated else "logged",
            "policies": None if named is None else {name: asdict(chosen) for name, chosen in named.items()},
            "bounds": None if bounds is None else asdict(bounds),
        },
        sources=files,
        version=_core.__version__,
        samples=samples,
        paired=_paired(found, outcome, names) if paired else None,
        horizon_bias=beyond,
    )


def _check_baseline(plan: Plan) -> None:
    """Refuse a table over the horizon that memory does not hold: `dr-bsl` makes it before the log is read."""
    horizon, asked = plan.settings.horizon, plan.settings.baseline is not None
    if asked and horizon is not None and plan.memory is not None and 8 * horizon > plan.memory:
        raise MemoryLimitError(8 * horizon, plan.memory, horizon, 1)


def check_continuing(continuing: bool, discount: float, bounds: Bounds | None) -> None:
    """Refuse to bound what follows after the horizon without a discount below 1 and a range of rewards."""
    if continuing and discount >= 1:
        raise UsageError(f"continuing=True needs a discount below 1, not {discount:g}: later rewards have no bound")
    if continuing and bounds is None:
        raise UsageError(
            "continuing=True needs bounds=Bounds(reward=...), the range of a reward, to bound what follows"
        )


def _goes_on(horizon: int, least: float, most: float) -> str:
    return (
        f"the task goes on after {horizon} steps: what it earns later adds {least:.3g} to {most:.3g} to every value, "
        f"and intervals are for the first {horizon} steps alone"
    )


def _paired(
    estimates: Sequence[Estimate], outcome: dict[str, Any], names: list[str]
) -> dict[tuple[str, str], Difference]:
    """Return the difference of each target policy's estimates from the mean return, by policy and estimator."""
    rows = {(names[row["policy"]], row["estimator"]): row for row in outcome["estimates"]}
    own = rows[BEHAVIOR, "mc"]["std_error"]
    error = None if own is None else own["value"]
    targets = (estimate for estimate in estimates if estimate.policy != BEHAVIOR)
    return {each.key: Difference.of(each, BEHAVIOR, rows[each.key]["difference"], error) for each in targets}


def check_paired(paired: bool, cluster: str | None, truncation: str | None) -> None:
    """Refuse differences from the logged policy where their errors would not be known."""
    if paired and truncation == "bootstrap":
        raise UsageError(
            'paired=True cannot be had with truncation="bootstrap": rewards that a model adds are not what the logged '
            "policy earned"
        )
    if paired and cluster is not None:
        raise UsageError(
            "paired=True cannot be had with cluster=: the errors of differences are those of single episodes"
        )


def check_types(columns: Any, policies: Any, bounds: Any = None) -> None:
    """Refuse what is none of our objects where one is needed."""
    if columns is not None:
        scalars.instance("columns", columns, Columns, "Columns(reward=..., ...)")
    if policies is not None:
        scalars.instance("policies", policies, Mapping, "a mapping of names to PolicyColumns")  # type: ignore[type-abstract]
    if bounds is not None:
        scalars.instance("bounds", bounds, Bounds, "Bounds(reward=(lowest, highest), ...)")
    for name, chosen in (policies or {}).items():
        if not isinstance(chosen, PolicyColumns):
            hint = f"PolicyColumns(target_prob={chosen!r})" if isinstance(chosen, str) else "PolicyColumns(...)"
            raise UsageError(f"policy {name!r} takes {hint}, not {type(chosen).__name__}")


def check_cluster(cluster: Any, passes: int = 2) -> None:
    """Refuses what is no name, and a single reading."""
    if cluster is not None and not isinstance(cluster, str):
        raise UsageError(f"cluster= takes the name of a column, not {scalars.shown(cluster)}")
    if cluster is not None and passes == 1:
        raise UsageError("cluster= adds up influence values, which are known after a second reading: it needs passes=2")


def _beside(source: Source, plan: Plan, cluster: str | None) -> list[str]:
    """Columns that standard errors need beside those that a scan reads, as far as the log has them."""
    scored = [SCORE, plan.columns.action] if plan.estimated and SCORE in source.columns else []
    identities = [name for name in source.columns if SOMEBODY.fullmatch(name)] if cluster is None else [cluster]
    return [name for name in scored + identities if name in source.columns]


def _about_clusters(source: Source, plan: Plan, clusters: Clusters | None, passes: int) -> list[str]:
    """Say how many clusters there are, or that there might be some; a log to be read once is not read for that."""
    if clusters is not None:
        return [clusters.note()]
    return [] if passes == 1 else hints(source, plan.columns)


def _for_one_pass(plan: Plan, explicit: bool, remarks: list[str]) -> Plan:
    """Without what cannot be had of a single reading; what was asked for by name is refused."""
    asked = {estimator for policy in plan.policies for estimator in policy.estimators}
    if plan.settings.horizon is None and "dr-bsl" in asked:
        raise UsageError("estimator 'dr-bsl' needs horizon= where the log is read once only")
    if not asked & BLENDED:
        return plan
    reason = "the covariances that its blend is made of are known after a second reading: it needs passes=2"
    if explicit:
        raise UsageError(f"estimator 'magic' has no value after one reading: {reason}")
    remarks.append(f"magic was left out: {reason}")
    for policy in plan.policies:
        plan = plan.without(policy.name, BLENDED)
    return plan


def make_plan(
    available: Sequence[str],
    columns: Columns,
    policies: Mapping[str, PolicyColumns] | None,
    settings: Settings,
    estimators: Sequence[str] | None,
) -> Plan:
    """What to compute, given what the log has."""
    if repeated := [name for name in available if available.count(name) > 1]:
        raise UsageError(f"the log has more than one column {repeated[0]!r}")
    for role in ("episode", "step", "reward"):
        columns.need(role, available)
    asked = None if estimators is None else check_ids(estimators)
    chosen = choose_estimators(find_policies(available, columns, policies), asked, settings.baseline)
    return Plan(
        columns=columns,
        settings=settings,
        terminal=columns.find("terminal", available),
        truncated=columns.find("truncated", available),
        policies=chosen,
        mc=asked is None or "mc" in asked,
    )


class NoWeightError(OffPolicyError):
    """A policy whose weights are all zero at some step, so that nothing can be divided by their sum."""

    def __init__(self, policy: str, step: int) -> None:
        """Names the policy, and the step from 1."""
        self.policy, self.step = policy, step
        super().__init__(
            f"every weight of policy {policy!r} is zero at t = {step} (counted from 1): wis, step-wis, wdr and "
            "magic are undefined, for the target policy never takes the logged actions; ask for others, such as "
            "'step-is'"
        )


def _normalisers(first: _core.Whole, names: list[str]) -> bytes:
    try:
        return first.normalisers()
    except ValueError as error:
        policy, step = error.args
        raise NoWeightError(names[policy], step) from None


def _outcome(first: _core.Whole, normalisers: bytes, second: _core.Whole | None) -> dict[str, Any]:
    """Return what the core found; numbers by step are arrays, since a list takes four times their memory."""
    outcome: dict[str, Any] = json.loads(first.outcome(normalisers, second))
    for policy, weights in enumerate(outcome["weights"]):
        if (steps := first.steps(policy)) is not None:
            weights["diagnosis"] |= dict(zip(BY_STEP, steps, strict=True))
    return outcome


def _without_dead_policies(
    scanner: Scanner, plan: Plan, first: _core.Whole, remarks: list[str]
) -> tuple[Plan, _core.Whole]:
    """Nobody asked for the weighted estimators by name: a policy that has none keeps the others."""
    while True:
        try:
            _normalisers(first, [BEHAVIOR, *(policy.name for policy in plan.policies)])
            return plan, first
        except NoWeightError as error:
            remarks.append(str(error).partition(", for the target")[0])
            plan = plan.without(error.policy, WEIGHTED)
            first = scanner.scan(plan, "first", None)
