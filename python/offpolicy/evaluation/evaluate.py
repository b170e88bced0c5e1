"""The function `evaluate`, which reads a log once, or twice where a standard error needs the normalisers first.

    open → plan → prepare → first pass → mend → second pass → plugins → build

Each step is a function below `evaluate`, in this order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from offpolicy import _core
from offpolicy._util.polars_calls import naming_the_log
from offpolicy._util.probabilities import renormalised
from offpolicy.annotation.annotated_logs import Counting
from offpolicy.diagnostics import Diagnostics
from offpolicy.errors import OffPolicyError
from offpolicy.errors.kinds.of_evaluation import no_weight
from offpolicy.evaluation.bounds import Bounds, Range, Terms
from offpolicy.evaluation.difference import Difference
from offpolicy.evaluation.estimate import Estimate, IntervalSettings
from offpolicy.evaluation.estimators import RETURNS, named
from offpolicy.evaluation.options import (
    MapFunction,
    Options,
    ProgressFunction,
    check_cluster,
    check_continuing,
    check_types,
)
from offpolicy.evaluation.outcome import Outcome, with_plugins
from offpolicy.evaluation.passes import Scanner
from offpolicy.evaluation.plan import BEHAVIOR, Plan, left_out
from offpolicy.evaluation.planning import check_baseline, for_one_pass, make_plan
from offpolicy.evaluation.result import Evaluation, build
from offpolicy.evaluation.std_errors import by_cluster, scored_log, with_estimated_behavior
from offpolicy.logs.clusters import SOMEBODY, Clusters, hints
from offpolicy.logs.columns import SCORE, Columns, PolicyColumns
from offpolicy.logs.log_probabilities import LogRatios
from offpolicy.logs.sort import tidy
from offpolicy.logs.sources import Source, open_log
from offpolicy.logs.trajectories import Samples
from offpolicy.logs.truncation import Cut, check_mended, mend, read_by_mending, with_checks

__all__ = ["NoWeightError", "check_cluster", "check_continuing", "check_types", "evaluate"]


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
    """Estimate from a log what the target policies would have earned.

    Parameters
    ----------
    log
        A Polars frame or lazy frame; a Parquet path, glob or folder, or a list of them; a pyarrow table, dataset or
        reader; a DuckDB relation; a pandas frame; any object with `__arrow_c_stream__`. Rows must be sorted by episode
        and step, unless `order` or `dedupe` sorts them first. A lazy frame is read by Polars, which holds at least one
        row group of a Parquet file in memory; give the path of a file with large row groups instead.
    discount
        γ, from 0 to 1.
    estimators
        Ids such as `"step-is"` and `"dr"`, also those of plugins; None for all that the columns allow, except for those
        that must be named, such as `"is-truncated"` and all of plugins. Each estimator of a plugin reads the log once
        more, in this process, and keeps one number per episode.
    columns, policies
        The names of the columns, where they are not the default ones, and those of several target policies.
    horizon
        H; None for the length of the longest episode.
    confidence, interval, bounds
        The level and the method of the intervals, and what is known for certain of rewards, ratios and model values.
        `offpolicy.intervals` lists the methods; `"auto"` chooses one that fits.
    baseline
        The constant of `dr-bsl`.
    cluster
        A column that is constant in each episode, such as `"user"`, if episodes with the same value may depend on each
        other. Standard errors and intervals are then computed by cluster (`offpolicy.logs.clusters`), and intervals
        that need independent episodes are withheld. Each estimate costs one more scan, and memory grows with the number
        of episodes.
    map
        A function that runs the parts of the scan elsewhere: `executor.map`, or anything that works like it. Intervals
        that use the values of single trajectories call it again when they are first asked for. Intervals that need
        weights or rewards by step read the log in this process: `likelihood`, and for `wis`, `step-wis` and `wdr` also
        the bootstrap, and `t` and `t-skew` up to a million steps.
    progress
        A function that is called with the number of rows done and the number of rows of the log (None if not known).
        Where the log is read twice, a row is half done after the first time.
    threads
        The number of threads; None for all cores.
    density
        True if the probabilities are densities, which may exceed 1.
    order, dedupe
        `order="any"` sorts the log first; `dedupe="identical"` sorts it too, and drops repeated rows. Both use Polars,
        whose threads a fork does not copy: start processes by "spawn" or "forkserver".
    truncation
        `"as-terminal"` takes episodes that were cut off as ended; `"bootstrap"` adds what the model expects of their
        later steps, and needs `q_hat` and `r_hat`; `"reduce-horizon"` evaluates the first steps that all of them have.
    batch_rows
        The number of rows per batch where the log is streamed.
    passes
        1 to read the log only once. Then `magic`, `is-truncated` and the standard errors of `step-wis` and `wdr` are
        not available, `dr-bsl` needs `horizon`, and no weighted estimate is called reliable.
    diagnostics
        False to compute no diagnostics beyond the effective sample size. This is a little faster, and the verdict then
        rests on less.
    paired
        True to compare each policy with the logged one, trajectory by trajectory, in the same scan:
        `ev.difference("target", "behavior", estimator="dr")`.
    continuing
        True if the task goes on after H steps, and its whole value is wanted. `horizon_bias` of the result is then the
        range of what later rewards add, γ^H r / (1 − γ) with r in `bounds.reward`. This needs `bounds` and γ < 1.
    memory
        The limit in bytes for what grows with the log, as a number or a text such as `"2GB"`; None for half of what is
        available. A log that needs more is refused with `MemoryLimitError`, which says how much it needs. Each step of
        the longest episode takes 33 bytes per sum over episodes (seven sums for all estimators of a policy with
        diagnostics) in each thread, and up to 144 bytes more per policy when the log has been read. An episode takes
        28 bytes, or none if its id follows the one before. Ids beyond half of the limit go to temporary files. Batches
        that are being read, and the memory of Polars, come on top.

    Examples
    --------
    >>> import offpolicy as op
    >>> ev = op.evaluate(op.demo_log(), discount=0.9, estimators=["step-is", "step-wis", "dr"])
    >>> abs(ev["dr"].value - op.demo_value()) < 3 * ev["dr"].std_error
    True
    """
    options = Options(
        discount=discount,
        estimators=estimators,
        columns=columns,
        policies=policies,
        horizon=horizon,
        confidence=confidence,
        interval=interval,
        baseline=baseline,
        cluster=cluster,
        map=map,
        progress=progress,
        threads=threads,
        bounds=bounds,
        density=density,
        order=order,
        dedupe=dedupe,
        truncation=truncation,
        batch_rows=batch_rows,
        passes=passes,
        diagnostics=diagnostics,
        paired=paired,
        continuing=continuing,
        memory=memory,
    )
    story, counting = Story(), Counting.of(log)
    opened = _open(log, options)
    plan = _plan(opened, options, story)
    files, source = opened.source.files(), _prepare(opened, plan, options, story)
    read = _first_pass(source, plan, options, story, counting)
    read = _mend(read, options, story)
    if not options.explicit:
        read = _without_dead_policies(read, story)
    computed = _second_pass(read, options)
    samples = _samples(computed, read, options)
    outcome = with_plugins(computed, read.plan, samples)
    estimates, beyond = _build(outcome, samples, read, opened, options, story)
    source.check_unchanged()
    names = read.plan.policy_names
    return Evaluation(
        estimates=estimates,
        details=Diagnostics(outcome, dict(enumerate(names[1:], start=1))),
        episodes=outcome.episodes,
        steps=outcome.steps,
        horizon=outcome.horizon,
        repairs=story.repairs,
        notes=story.notes,
        settings=options.record([each.estimator for each in estimates], opened.columns, opened.plan.estimated),
        sources=files,
        version=_core.__version__,
        samples=samples,
        paired=_paired(estimates, outcome, names) if options.paired else None,
        horizon_bias=beyond,
    )


@dataclass
class Story:
    """What a result reports beside its numbers: repairs of the log, and notes."""

    repairs: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Opened:
    """A log with its columns as the user named them, and a plan of all that could be computed from it."""

    source: Source
    columns: Columns
    log_ratios: LogRatios | None
    plan: Plan


@dataclass(frozen=True)
class Read:
    """The result of the first pass: the sums of the log, and the plan and the log for the next pass."""

    scanner: Scanner
    plan: Plan
    whole: _core.Whole
    clusters: Clusters | None
    #: Words for what replaced the missing rewards of truncated episodes.
    taken: str | None = None


def _open(log: Any, options: Options) -> Opened:
    """Open the log, and find the policies and estimators that its columns allow."""
    source = open_log(log)
    named = (options.columns or Columns()).with_estimates(source.columns)
    columns, policies, available = named, options.policies, source.columns
    if (log_ratios := LogRatios.of(source.columns, named, policies)) is not None:
        columns, policies = log_ratios.columns, log_ratios.policies
        available = [*available, *log_ratios.pairs]
    plan = make_plan(available, columns, policies, options.settings, options.estimators)
    plan = replace(plan, diagnostics=options.diagnostics, paired=options.paired, memory=options.most_bytes)
    check_baseline(plan)
    return Opened(source, named, log_ratios, plan)


def _plan(opened: Opened, options: Options, story: Story) -> Plan:
    """Return the plan of what is computed, which is less where the log is read only once."""
    if not options.explicit:
        story.notes += left_out(opened.plan)
    return for_one_pass(opened.plan, options.explicit, story.notes) if options.passes == 1 else opened.plan


def _prepare(opened: Opened, plan: Plan, options: Options, story: Story) -> Source:
    """Write the ratios of log-probabilities beside the log and sort it, where that is needed."""
    source = opened.source
    if opened.log_ratios is not None:
        names = _kept(source, plan, options)
        source = opened.log_ratios.written(source, opened.columns, names, options.density)
    if options.order == "any" or options.dedupe:
        names = _kept(source, plan, options)
        source, removed = tidy(source, names, plan.columns, options.dedupe == "identical")
        story.repairs["sorted"] = True
        if options.dedupe:
            story.repairs["duplicates_removed"] = removed
            story.notes.append(f"{removed} repeated {'row was' if removed == 1 else 'rows were'} dropped")
    return source


def _kept(source: Source, plan: Plan, options: Options) -> list[str]:
    """Return the columns that a rewritten log must have, each once."""
    names = [*plan.names(), *read_by_mending(plan), *_beside(source, plan, options.cluster)]
    return list(dict.fromkeys(names))


def _first_pass(source: Source, plan: Plan, options: Options, story: Story, counting: Counting) -> Read:
    """Read the log for the first time, and the clusters that its episodes come in."""
    scanner = _scanner(source, plan, options)
    whole = scanner.scan(with_checks(plan), _core.Pass.FIRST)
    if counting.rows:
        story.repairs["renormalised"] = counting.rows
        story.notes += renormalised(counting.rows)
    clusters = None
    if options.cluster is not None:
        clusters = Clusters.read(source, plan.columns, options.cluster, whole.episodes)
    story.notes += _about_clusters(source, plan, clusters, options.passes)
    return Read(scanner, plan, whole, clusters)


def _scanner(source: Source, plan: Plan, options: Options) -> Scanner:
    return Scanner(source, options.readers, options.batch_rows, options.map, options.progress, plan, options.passes)


def _mend(read: Read, options: Options, story: Story) -> Read:
    """Treat truncated episodes as `truncation` says, and read the log again if that changed it."""
    whole, plan, source = read.whole, read.plan, read.scanner.source
    if not (options.truncation and whole.truncated):
        return read
    cut, beside = Cut(whole.truncated, whole.shortest_truncated or 0), _beside(source, plan, options.cluster)
    with source.unchanged():
        mended = mend(source, plan, cut, options.explicit, beside)
    story.repairs |= mended.repairs
    story.notes += mended.remarks
    if mended.source is source:
        return replace(read, taken=mended.taken)
    scanner = _scanner(mended.source, mended.plan, options)
    whole = scanner.scan(mended.plan, _core.Pass.FIRST)
    check_mended(read.scanner.reading, scanner.reading, mended.plan, source.name)
    return Read(scanner, mended.plan, whole, read.clusters, mended.taken)


def _without_dead_policies(read: Read, story: Story) -> Read:
    """Drop the weighted estimators of every policy whose weights are all zero at some step, and read the log again.

    This is done only where the user did not ask for them by name.
    """
    while (dead := read.whole.without_weight) is not None:
        story.notes.append(str(NoWeightError(*dead)).partition(", for the target")[0])
        plan = read.plan.without(dead[0], named(lambda about: about.weighted))
        read = replace(read, plan=plan, whole=read.scanner.scan(plan, _core.Pass.FIRST))
    return read


def _second_pass(read: Read, options: Options) -> _core.Outcome:
    """Read the log again where standard errors need the normalisers first, and turn all sums into numbers."""
    if (dead := read.whole.without_weight) is not None:
        raise NoWeightError(*dead)
    second = None
    if read.whole.needs_second_pass and options.passes == 2:
        second = read.scanner.scan(read.plan.second(), _core.Pass.SECOND, read.whole.normalisers)
    return read.whole.outcome(second)


def _samples(outcome: _core.Outcome, read: Read, options: Options) -> Samples:
    """Return what reads single trajectories for estimators of plugins and for intervals."""
    scanner = read.scanner
    return Samples(
        scanner.again,
        scanner.source,
        read.plan,
        read.whole.normalisers,
        read.clusters,
        options.passes,
        scanner.crossing,
        scanner.reading,
        outcome.horizon,
    )


def _build(
    outcome: Outcome, samples: Samples, read: Read, opened: Opened, options: Options, story: Story
) -> tuple[tuple[Estimate, ...], Range | None]:
    """Return the estimates with all that their intervals need, and the range of what follows after the horizon."""
    plan, estimated = read.plan, opened.plan.estimated
    terms = Terms(
        options.discount,
        outcome.horizon,
        options.baseline,
        longest_seen=options.horizon is None,
        shortest=outcome.lengths[0][0],
        mended=read.taken,
    )
    beyond = options.bounds.remainder(terms) if options.continuing and options.bounds is not None else None
    if beyond is not None:
        story.notes.append(_goes_on(outcome.horizon, *beyond))
    ratios = {policy.name for policy in plan.policies if "transition_ratio" in policy.models}
    found, notes = build(
        outcome,
        plan.policy_names,
        lambda policy, _: policy != BEHAVIOR or plan.mc,
        options.explicit,
        lambda policy: replace(terms, transition_ratio=policy in ratios, estimated=estimated and policy != BEHAVIOR),
        IntervalSettings(options.confidence, options.interval, options.bounds),
        samples,
    )
    if read.clusters is not None:
        found = by_cluster(found, samples)
    if estimated:
        scored = scored_log(plan, samples, outcome.steps)
        found, remark = with_estimated_behavior(found, samples, scored, options.passes)
        story.notes.append(remark)
    story.notes += notes
    return found, beyond


def _goes_on(horizon: int, least: float, most: float) -> str:
    return (
        f"the task goes on after {horizon} steps: what it earns later adds {least:.3g} to {most:.3g} to every value, "
        f"and intervals are for the first {horizon} steps alone"
    )


def _paired(estimates: Sequence[Estimate], outcome: Outcome, names: Sequence[str]) -> dict[tuple[str, str], Difference]:
    """Return the differences of the target policies' estimates from the mean return, by policy and estimator."""
    rows = {(names[row.policy], row.estimator): row for row in outcome.estimates}
    own = rows[BEHAVIOR, RETURNS].std_error
    error = None if own is None else own.value
    targets = (estimate for estimate in estimates if estimate.policy != BEHAVIOR)
    return {each.key: Difference.of(each, BEHAVIOR, rows[each.key].difference, error) for each in targets}


def _beside(source: Source, plan: Plan, cluster: str | None) -> list[str]:
    """Return the columns that standard errors need beside those that a scan reads, as far as the log has them."""
    scored = [SCORE, plan.columns.action] if plan.estimated and SCORE in source.columns else []
    identities = [name for name in source.columns if SOMEBODY.fullmatch(name)] if cluster is None else [cluster]
    return [name for name in scored + identities if name in source.columns]


def _about_clusters(source: Source, plan: Plan, clusters: Clusters | None, passes: int) -> list[str]:
    """Return notes on how many clusters there are, or on columns that might be clusters.

    The second kind is left out if the log may be read only once.
    """
    if clusters is not None:
        return [clusters.note()]
    return [] if passes == 1 else hints(source, plan.columns)


class NoWeightError(OffPolicyError):
    """An error for a policy whose weights are all zero at some step, so that their sum cannot be a divisor."""

    kind = no_weight.id
    remedy = no_weight.remedy

    def __init__(self, policy: str, step: int) -> None:
        """Name the policy, and the step counted from 1."""
        self.policy, self.step = policy, step
        *others, last = named(lambda about: about.weighted)
        undefined = f"{', '.join(others)} and {last}"
        super().__init__(no_weight(policy=repr(policy), step=step, estimators=undefined).message)
