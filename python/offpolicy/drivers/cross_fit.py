"""k-fold DR, Jiang & Li (2016), 6.1: every trajectory is evaluated once, with a model that has not seen it.

    fold(i) = ⌊k · share(i)⌋,    share(i) in [0, 1): a hash of the episode's id (`offpolicy.folds`)
    V = (1/n) Σ_i DR_i(Q̂_{-fold(i)}),    Q̂_{-j} fitted to all folds but j

The paper averages the estimates of k folds of equal size, which is the same mean. Folds by a hash have only about equal
sizes; here the mean is taken over trajectories, so that each counts alike. `evaluate` makes every estimate in one scan
over all folds together: a model that ignores its data gives bit for bit what it would give without folds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from offpolicy import intervals
from offpolicy._util import scalars, words
from offpolicy._util.phrase import phrase
from offpolicy._util.polars_calls import naming_the_log
from offpolicy._util.probabilities import renormalised
from offpolicy.annotation.annotator import MODELLED
from offpolicy.annotation.transition_ratio import RatioOfFolds
from offpolicy.drivers.arguments import (
    behavior_of,
    described,
    described_behavior,
    read_behavior,
    read_domain,
    read_estimators,
    read_fitter,
    read_parts,
    read_policies,
    read_settings,
)
from offpolicy.drivers.cross_fit_result import CrossFit, Fold
from offpolicy.drivers.split_log import TEST, TRAIN, Parts, SplitLog, Stored
from offpolicy.errors.kinds.of_arguments import bad_value
from offpolicy.errors.kinds.of_models import fraction_leaves_none, one_fold_has_all
from offpolicy.evaluation.bounds import Bounds
from offpolicy.evaluation.estimators import own_columns
from offpolicy.evaluation.evaluate import (
    NoWeightError,
    check_cluster,
    check_continuing,
    check_types,
    evaluate,
)
from offpolicy.evaluation.options import ProgressFunction
from offpolicy.evaluation.passes import Steady
from offpolicy.evaluation.plan import TARGET, Plan, PlannedPolicy, Probabilities, Settings, choose_estimators, lacking
from offpolicy.evaluation.result import Evaluation
from offpolicy.logs.clusters import Clusters, hints
from offpolicy.logs.columns import ESTIMATED, Columns, PolicyColumns
from offpolicy.logs.log_probabilities import with_behavior
from offpolicy.logs.reading import steady
from offpolicy.logs.sort import tidy
from offpolicy.logs.sources import Source, open_log
from offpolicy.models.behavior import behavior_columns
from offpolicy.protocols import ModelFitter, Policy, Setting


@naming_the_log
def cross_fit(
    log: Any,
    domain: str | Setting,
    *,
    policy: Policy | Mapping[str, Policy],
    fitter: str | ModelFitter = "tabular",
    folds: int | None = None,
    train_fraction: float | None = None,
    estimators: Sequence[str] | None = None,
    transition_ratio: bool = True,
    behavior: Any = None,
    smoothing: float = 1.0,
    discount: float | None = None,
    horizon: int | None = None,
    columns: Columns | None = None,
    seed: int = 0,
    confidence: float = 0.95,
    interval: str = "t",
    bounds: Bounds | None = None,
    baseline: float | None = None,
    cluster: str | None = None,
    order: str = "sorted",
    truncation: str | None = None,
    threads: int | None = None,
    progress: ProgressFunction | None = None,
    continuing: bool = False,
) -> CrossFit:
    """Estimate what target policies would have earned, with models fitted on other episodes than those they evaluate.

    The standard error is that of the values of all trajectories, s/√n; `offpolicy.drivers.cross_fit_result` explains
    what it leaves out, and how finite-sample intervals are made.

    Parameters
    ----------
    log
        Any log that `evaluate` reads, with the columns of state and action. A frame stays in memory. Any other log is
        read in batches, once or twice per fold, and annotated in temporary Parquet files. Apart from 28 bytes per
        episode, memory is then bounded, unless the fitter needs more (`tabular` does not).
    domain
        What the log does not say: a domain, the name of one, or `op.LoggedDomain(...)`.
    policy
        π1, or a mapping of names to several policies, which are evaluated in the same scan.
    fitter
        The name of a model fitter, or one made by `op.fitter(name, ...)`. It gets the log with the default names of
        columns, beside those that `columns` gives.
    folds
        k, from 2 to the number of episodes; 2 by default. An episode's fold depends only on its id and the seed, so
        that folds differ in size and some may be empty. For this reason n folds of n episodes only approximate leaving
        one out.
    train_fraction
        Instead of folds, the single split of the paper: models are fitted to this fraction of the episodes, D_reg,
        chosen by a hash, and only the others, D_test, are evaluated. `reg`, the mean of V̂(s_1) over the first states of
        D_test, is reported too.
    estimators
        The ids of estimators; None for all that the columns allow.
    transition_ratio
        Whether `dr-v2` gets P̂/P of each transition, which makes it unbiased. The domain and the models must know P and
        P̂ (`transition_probability`); the notes say whether they do. If they do not, or with False, P̂/P = 1 is taken,
        with less variance and a bias of up to εV_max Σγ^t (Proposition 1).
    behavior
        None to take the probabilities of the log. Otherwise they are estimated, those of a fold from the other folds,
        and the result says so. Give `"counts"` to count in the domain's grid, an `op.Grid` to count in that grid, or a
        classifier with `fit` and `predict_proba`.
    smoothing
        α of the estimated probabilities, as in `estimate_behavior`.
    discount, horizon
        Those of the domain by default.
    columns
        The names of the log's columns, with those of the state in the domain's order.
    seed
        Another seed puts the episodes into other folds.
    cluster
        As in `evaluate`. All episodes of a cluster are in the same fold, so that no model has seen the cluster of an
        episode that it evaluates.
    confidence, interval, bounds, baseline, order, truncation, threads, continuing
        As in `evaluate`. If bounds are not given, the domain's range of rewards is taken.
    progress
        A function that is called with the number of folds done so far and the number of all folds.

    Examples
    --------
    >>> import offpolicy as op
    >>> from offpolicy.testing import Walk
    >>> walk = Walk()
    >>> log = walk.simulate(walk.behavior, n=2000, seed=1)
    >>> eager = walk.policies["eager"]
    >>> cf = op.cross_fit(log, walk, policy=eager, fitter="tabular", folds=5, estimators=["step-is", "dr"])
    >>> truth = walk.exact_values(eager)[1][0, 3]
    >>> bool(abs(cf["dr"].value - truth) < 3 * cf["dr"].std_error), cf["dr"].std_error < cf["step-is"].std_error
    (True, True)
    """
    intervals.check(interval, confidence)
    check_types(columns, None, bounds)
    scalars.choice("order", order, ("sorted", "any"))
    transition_ratio, threads = scalars.flag("transition_ratio", transition_ratio), scalars.threads(threads)
    continuing = scalars.flag("continuing", continuing)
    parts = read_parts(folds, train_fraction, seed)
    policies, fit = read_policies(policy), read_fitter(fitter)
    wanted = read_estimators(estimators, beside=[] if train_fraction is None else ["reg"])
    setting, columns = read_domain(domain, horizon, discount), columns or Columns()
    bounds = Bounds.of(setting) if bounds is None else bounds
    settings = read_settings(setting, baseline, truncation)
    check_continuing(continuing, settings.discount, bounds)
    source = with_behavior(open_log(log), columns)
    behavior = behavior_of(behavior, setting, columns.has_behavior(source.columns))
    estimated = read_behavior(behavior, smoothing)
    files = source.files()
    if order == "any":
        source, _ = tidy(source, source.columns, columns, dedupe=False)
    check_cluster(cluster)
    log_seen = _refuse(source, columns, settings, wanted, estimated is not None, threads)
    with steady(log_seen.check):
        clusters = None if cluster is None else Clusters.read(source, columns, cluster)
        parts = parts if clusters is None else _by_cluster(parts, clusters, train_fraction)
        beside = [*own_columns(wanted or ()), *([] if cluster is None else [cluster])]
        split_log = SplitLog(source, columns, setting, parts, beside)
        chosen = _evaluated(split_log.episodes, parts.count, train_fraction)
        if estimated is not None:
            split_log.estimated(behavior_columns(split_log.whole, setting, parts.of, parts.count, **estimated))
        into = {name: PolicyColumns.named(str(number)) for number, name in enumerate(policies)}
        # A bootstrap of truncated episodes leaves dr-v2 out and needs R̂, but with P̂/P the column r_hat may hold Q̂.
        ratio = RatioOfFolds(setting, wanted, transition_ratio and truncation != "bootstrap")
        annotated = _annotated(split_log, chosen, policies, into, fit, ratio, threads, progress)
    estimate = partial(
        evaluate,
        discount=settings.discount,
        horizon=settings.horizon,
        baseline=baseline,
        truncation=truncation,
        columns=Columns(behavior_prob=columns.behavior_prob if estimated is None else ESTIMATED),
        policies=ratio.named(into),
        confidence=confidence,
        interval=interval,
        bounds=bounds,
        cluster=cluster,
        threads=threads,
        continuing=continuing,
    )
    pooled = estimate(split_log.together(annotated.values()), estimators=wanted)
    about = {
        "folds": parts.count if train_fraction is None else None,
        "train_fraction": train_fraction,
        "seed": seed,
        "fitter": described(fitter),
        "domain": setting.name,
        "transition_ratio": transition_ratio,
        **described_behavior(behavior, smoothing),
    }
    remarks = renormalised(split_log.renormalised) + (hints(source, columns) if clusters is None else [])
    if split_log.renormalised:
        pooled.repairs["renormalised"] = split_log.renormalised
    pooled = _with_provenance(pooled, files, order, columns, about, remarks + ratio.notes)
    total = sum(split_log.episodes.values())
    each = (_fold(part, split_log.together([annotated[part]]), total, estimate, wanted) for part in chosen)
    return CrossFit.pooled(pooled, tuple(each))


def _refuse(
    source: Source,
    columns: Columns,
    settings: Settings,
    estimators: Sequence[str] | None,
    estimated: bool,
    threads: int | None,
) -> Steady:
    """Refuse, before a model is fitted, a log that could not be evaluated, with the files and rows of the user."""
    for role in ("episode", "step", "reward"):
        columns.need(role, source.columns)
    behavior = None if estimated else columns.with_estimates(source.columns).find("behavior_prob", source.columns)
    ratio = Probabilities("", "") if estimated or behavior else None
    lacks = phrase(
        "{lacking}, or estimate it, {behavior}",
        lacking=lacking(columns, source.columns, behavior, TARGET, words.column),
        behavior=words.given("behavior", "counts"),
    )
    own = [name for name in own_columns(estimators or ()) if name in source.columns]
    target = PlannedPolicy(TARGET, ratio, dict.fromkeys([*MODELLED, *own], ""), lacks=lacks)
    choose_estimators([target], estimators, settings.baseline)
    plan = Plan(
        columns=columns,
        settings=settings,
        terminal=columns.find("terminal", source.columns),
        truncated=columns.find("truncated", source.columns),
        policies=(),
        mc=True,
        extra=((behavior, "behavior_prob"),) if behavior else (),
    )
    return Steady(source, plan, threads)


def _by_cluster(parts: Parts, clusters: Clusters, train_fraction: float | None) -> Parts:
    """Return parts by the id of the cluster, so that all episodes of a cluster are in one part."""
    if train_fraction is None and parts.count > clusters.count:
        raise bad_value(name="folds", expected=f"from 2 to the number of clusters, {clusters.count}", found=parts.count)
    return Parts(parts.count, lambda episodes: parts.of(clusters.of(episodes)))


def _evaluated(episodes: Mapping[int, int], folds: int, train_fraction: float | None) -> list[int]:
    """Return the parts to evaluate, and refuse a split that leaves no other part to fit to."""
    total = sum(episodes.values())
    if train_fraction is not None:
        for part, what in ((TEST, "evaluate"), (TRAIN, "fit a model to")):
            if part not in episodes:
                raise fraction_leaves_none(fraction=f"{train_fraction:g}", total=total, what=what)
        return [TEST]
    if folds > total:
        raise bad_value(name="folds", expected=f"from 2 to the number of episodes, {total}", found=folds)
    if len(episodes) == 1:
        raise one_fold_has_all(
            what=f"{total} episodes fall into",
            folds=folds,
            do="fit a model to",
            how="choose more folds, or another seed",
        )
    return list(episodes)


def _annotated(
    split_log: SplitLog,
    chosen: Sequence[int],
    policies: Mapping[str, Policy],
    into: Mapping[str, PolicyColumns],
    fitter: ModelFitter,
    ratio: RatioOfFolds,
    threads: int | None,
    progress: ProgressFunction | None,
) -> dict[int, Stored]:
    """Return the chosen parts, each annotated by the policies and by the model of the other parts."""
    found = {}
    for done, part in enumerate(chosen):
        if progress:
            progress(done, len(chosen))
        sides = split_log.sides(part, threads)
        values = sides.values(sides.fit(fitter), list(policies.values()))
        ratio.ask(values)
        found[part] = split_log.stored(part, sides, policies, values, ratio.named(into))
    if progress:
        progress(len(chosen), len(chosen))
    return found


def _with_provenance(
    pooled: Evaluation,
    files: list[dict[str, Any]],
    order: str,
    columns: Columns,
    about: dict[str, Any],
    remarks: list[str],
) -> Evaluation:
    """Return the evaluation with the user's files and columns instead of temporary ones, and a record of the folds."""
    beside = "reg is the mean of V̂(s_1) over the first states of the episodes evaluated, which the model has not seen"
    return replace(
        pooled,
        sources=files,
        notes=pooled.notes + remarks + ([] if about["train_fraction"] is None else [beside]),
        repairs=({"sorted": True} if order == "any" else {}) | pooled.repairs,
        settings=pooled.settings | {"order": order, "columns": asdict(columns), "cross_fit": about},
    )


def _fold(
    part: int, log: Source, total: int, estimate: Callable[..., Evaluation], wanted: Sequence[str] | None
) -> Fold:
    try:
        found = estimate(log, estimators=wanted)
    except NoWeightError:  # a single fold may lack weights that all folds together have
        found = estimate(log)
    return Fold(part, total - found.episodes, found)
