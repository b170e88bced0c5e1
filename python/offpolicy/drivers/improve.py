"""Safe policy improvement, after Jiang & Li (2016), section 6.2: the highest lower bound wins, if it is high enough.

    difference    π* = argmax_π D̄(π) − C σ_D(π)    if that maximum is above 0,        otherwise π0
    value         π* = argmax_π V(π) − C σ(π)      if that maximum is above V(π0),    otherwise π0

Each candidate is evaluated on D ∖ D_train, where D_train is the part of the log that it and its Q̂ were made from. The
second rule is the paper's. Its V(π0), the mean return of all of D, is an estimate too, and no bound includes its error:
with a good model σ is small, and the noise of V(π0) alone may decide. The first rule compares pairs: D_i = X_i − G_i is
the value of trajectory i under the candidate minus its return. Then σ_D includes the errors of both, and what moves
both alike cancels.

C ≥ 0 is the caution: at 0 the best point estimate wins. Scores never grow with C, so that a behaviour policy that is
kept is also kept with more caution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import polars as pl

from offpolicy import _core
from offpolicy._util import scalars
from offpolicy._util.polars_calls import naming_the_log
from offpolicy._util.probabilities import renormalised
from offpolicy.drivers.arguments import (
    behavior_of,
    described,
    described_behavior,
    read_behavior,
    read_domain,
    read_fraction,
    read_settings,
    refuse_what_is_missing,
)
from offpolicy.drivers.candidates import find_candidates
from offpolicy.drivers.improvement import SCHEMA, BehaviorValue, Improvement, at_least
from offpolicy.drivers.score import LowerBound, Score, Scoring
from offpolicy.drivers.split_log import default_names
from offpolicy.errors.kinds.of_drivers import bounds_nothing, made_of_ratios, value_of_behavior
from offpolicy.evaluation.bounds import Bounds
from offpolicy.evaluation.estimators import averaged, check_ids, describe
from offpolicy.evaluation.evaluate import check_types, evaluate
from offpolicy.evaluation.options import ProgressFunction
from offpolicy.evaluation.plan import BEHAVIOR, need_baseline
from offpolicy.evaluation.result import Evaluation
from offpolicy.folds import fold_of
from offpolicy.intervals import PROMISES, method_of
from offpolicy.intervals.auto import AUTO
from offpolicy.logs.columns import ESTIMATED, SCORE, Columns, PolicyColumns
from offpolicy.logs.log_probabilities import with_behavior
from offpolicy.logs.reading import steady
from offpolicy.logs.sort import tidy
from offpolicy.logs.sources import Source, open_log
from offpolicy.logs.steps import counted_from, smallest_step, steps_of
from offpolicy.models.behavior import behavior_columns
from offpolicy.models.behavior_policy import is_policy
from offpolicy.protocols import Generator, ModelFitter, Policy, Setting

#: The number of parts of the episodes; the behaviour policy of each part is estimated from the others.
PARTS = 2
#: The values of `against=`, which says what a score bounds, and those of `require=`, the least verdict of a winner.
AGAINST, REQUIRED = ("difference", "value"), ("fragile", "reliable")


@naming_the_log
def improve(
    log: Any,
    domain: str | Setting,
    *,
    generator: str | Generator | Mapping[str, Policy] = "mixture",
    fitter: str | ModelFitter = "tabular",
    train_fraction: float = 0.5,
    estimator: str = "dr",
    caution: float | None = None,
    against: str = "difference",
    require: str = "fragile",
    transition_ratio: bool = True,
    behavior: Any = None,
    smoothing: float = 1.0,
    discount: float | None = None,
    horizon: int | None = None,
    columns: Columns | None = None,
    confidence: float | None = None,
    interval: str | None = None,
    bounds: Bounds | None = None,
    baseline: float | None = None,
    order: str = "sorted",
    truncation: str | None = None,
    threads: int | None = None,
    progress: ProgressFunction | None = None,
) -> Improvement:
    """Find the candidate whose gain over the behaviour policy has the highest lower bound, if that is above 0.

    Parameters
    ----------
    log
        Any log that `evaluate` reads, with the columns of state and action.
    domain
        What the log does not say: a domain, the name of one, or `op.LoggedDomain(...)`.
    generator
        Where candidates come from: the name of a generator, such as the paper's `"mixture"`; any object with
        `candidates(log, domain)`; or a mapping of names to policies that were not made from this log.
    fitter
        The fitter of Q̂ on D_train, by name or as an object. A generator that is given by name gets it too if it takes a
        fitter. A candidate that brings its own model of D_train is evaluated with that model.
    train_fraction
        The share of the log that Q̂ is fitted to if the estimator needs Q̂ and a candidate was made from no part of it.
    estimator
        One that averages values of trajectories: `is`, `step-is`, `dr`, `dr-bsl` or `dr-v2`.
    caution
        C of the score, D̄ − Cσ_D or V − Cσ, at least 0; 1 by default.
    against
        With `"difference"`, a score bounds the gain, the mean of paired differences of a candidate's values from the
        returns of the same episodes, and must be above 0. With `"value"`, the paper's rule, a score bounds the
        candidate's value and must be above the mean return, whose own error it leaves out.
    require
        The worst verdict that a winner may have: `"fragile"`, which excludes `unusable`, or `"reliable"`.
    transition_ratio
        Whether `dr-v2` gets P̂/P if domain and model know them, as in `cross_fit`.
    behavior, smoothing
        None to take the probabilities of the log; otherwise how they are estimated, as in `cross_fit`. Here the
        episodes are put into two parts, and the probabilities of each part are estimated from the other part. The
        result says so.
    discount, horizon
        Those of the domain by default.
    columns
        The names of the log's columns, with those of the state in the domain's order.
    confidence, interval, bounds
        Another score instead of `caution`: the one-sided lower bound by the interval of this name, with this level,
        0.95 by default. Bounds are those of `evaluate`; if they are not given, the domain's range of rewards is taken.
    baseline, order, truncation, threads
        As in `evaluate`.
    progress
        A function that is called with the number of candidates evaluated so far and the number of all candidates,
        which is None until it is known.

    Examples
    --------
    >>> import offpolicy as op
    >>> from offpolicy.testing import Walk
    >>> walk = Walk()
    >>> best = op.improve(walk.simulate(walk.behavior, 500, seed=1), walk, estimator="dr", caution=2.0)
    >>> best.winner, round(best.behavior.value, 3)
    ('train 0.4, alpha 0.6', -0.009)
    >>> (row,) = best.candidates.filter(candidate=best.winner).to_dicts()
    >>> [round(row[name], 3) for name in ("value", "gain", "gain_error", "score")]
    [0.393, 0.402, 0.022, 0.359]
    """
    check_types(columns, None, bounds)
    setting, columns = read_domain(domain, horizon, discount), columns or Columns()
    if bounds is None and interval is not None:
        bounds = Bounds.of(setting)
    scalars.choice("against", against, AGAINST)
    scalars.choice("require", require, REQUIRED)
    bound = LowerBound.chosen(caution, interval, confidence, bounds, "gain" if against == "difference" else "V")
    check_estimator(estimator, baseline, setting)
    scalars.choice("order", order, ("sorted", "any"))
    transition_ratio, threads = scalars.flag("transition_ratio", transition_ratio), scalars.threads(threads)
    source = with_behavior(open_log(log), columns)
    behavior = behavior_of(behavior, setting, columns.has_behavior(source.columns))
    refuse_what_is_missing(source, columns, setting, behavior, generator, fitter, estimator)
    estimated, train_fraction = read_behavior(behavior, smoothing), read_fraction(train_fraction)
    numbers = read_settings(setting, baseline, truncation)
    common: dict[str, Any] = {"discount": numbers.discount, "horizon": numbers.horizon, "truncation": truncation}
    files = source.files()
    if order == "any":
        source, _ = tidy(source, source.columns, columns, dedupe=False)
    own, table, kept = _prepared(source, columns, setting, estimated, threads=threads, **common)
    value, low = own["mc"].value, bound.of(own["mc"])
    assert value is not None
    advance = progress or (lambda done, total: None)
    advance(0, None)
    floor = cost_floor(setting, estimator, bound) if against == "difference" else None
    with steady(partial(_check_unchanged, source, own)):
        first_step = counted_from(smallest_step(steps_of(open_log(table).lazy(), "step")))
        found = find_candidates(generator, fitter, table, setting)
        settings = {**common, "columns": kept, "threads": threads, "baseline": baseline}
        scoring = Scoring(
            table, setting, estimator, fitter, train_fraction, first_step, settings, transition_ratio, against, floor
        )
        scores = [_eligible(score, require) for score in scoring.scores(found, bound, advance)]
    ranked = _ranked(scores)
    least = 0.0 if against == "difference" else value
    enough = [score for score in ranked if _score(score) > least]
    best = next((score for score in enough if score.eligible), None)
    notes = [*own.notes, *renormalised(scoring.tally.rows)]
    notes += ["the rows were sorted by episode and step first"] if order == "any" else []
    if floor is not None:
        notes.append(
            f"rewards can be as low as {floor:g}, so that the gain of step-is is made of rewards counted from there, "
            "with the same expectation"
        )
    barred = enough[0] if enough and enough[0] is not best else None
    if best is not None and barred is not None:
        notes.append(
            f"{barred.candidate.name!r} has a higher bound and is not taken, for its verdict is {barred.verdict}"
        )
    others = {"against": against, "require": require, **described_behavior(behavior, smoothing), "order": order}
    others |= {**common, "baseline": baseline, "transition_ratio": transition_ratio}
    return Improvement(
        winner=BEHAVIOR if best is None else best.candidate.name,
        policy=_known_behavior(setting) if best is None else best.candidate.policy,
        candidates=_table(scores, ranked),
        behavior=BehaviorValue(value, own["mc"].std_error, low.low, own.episodes),
        estimator=estimator,
        bound=bound,
        against=against,
        require=require,
        kind=low.kind,
        verdict=None if best is None else best.verdict,
        barred=None if barred is None else barred.verdict,
        notes=notes,
        settings=_asked(setting, generator, fitter, estimator, bound, train_fraction, others, columns),
        sources=files,
        version=_core.__version__,
    )


def _known_behavior(domain: Setting) -> Policy | None:
    behavior = getattr(domain, "behavior", None)
    return behavior if is_policy(behavior) else None


def check_estimator(estimator: str, baseline: float | None, domain: Setting) -> None:
    """Refuse an estimator that does not average values of trajectories, with the reason."""
    check_ids([estimator])
    about, name = describe(estimator), repr(estimator)
    others = f"choose one of {', '.join(other for other in averaged() if other != estimator)}"
    if about.weighted:
        raise made_of_ratios(estimator=name, others=others)
    if about.of_behavior:
        raise value_of_behavior(estimator=name, target="candidate", others=others)
    if about.model == "value":
        raise bounds_nothing(estimator=name, bias="its model's bias", others=others)
    if about.unbiased in ("in-the-limit", "never") and not (about.shrinks and domain.reward_range[0] >= 0):
        other = "its bias" if about.unbiased == "never" else "its bias in small samples"
        bias = "its bias, which makes costs look smaller," if about.shrinks else other
        raise bounds_nothing(estimator=name, bias=bias, others=others)
    need_baseline(estimator, baseline)


def cost_floor(domain: Setting, estimator: str, bound: LowerBound) -> float | None:
    """Return the lowest reward if it is a cost, so that the gain of `step-is` must be measured from it; else None."""
    certain = bound.method not in (None, AUTO) and method_of(bound.method).kind in PROMISES
    lowest = domain.reward_range[0]
    return lowest if describe(estimator).with_baseline and not certain and -math.inf < lowest < 0 else None


def _asked(
    domain: Setting,
    generator: str | Generator | Mapping[str, Policy],
    fitter: str | ModelFitter,
    estimator: str,
    bound: LowerBound,
    train_fraction: float,
    others: Mapping[str, Any],
    columns: Columns,
) -> dict[str, Any]:
    """Return everything that the result depends on beside the log, in a form ready for JSON."""
    return {
        "domain": domain.name,
        "generator": "policies" if isinstance(generator, Mapping) else described(generator),
        "fitter": described(fitter),
        "estimator": estimator,
        "caution": bound.caution,
        "interval": bound.method,
        "confidence": bound.confidence,
        "train_fraction": train_fraction,
        **others,
        "bounds": None if bound.bounds is None else asdict(bound.bounds),
        "columns": asdict(columns),
    }


def _prepared(
    source: Source, columns: Columns, domain: Setting, estimated: dict[str, Any] | None, **settings: Any
) -> tuple[Evaluation, Any, Columns]:
    """Return the behaviour policy's own value, the log for generators and fitters, and the column of probabilities."""
    own = _behavior(source, columns, estimated is not None, **settings)
    table = _with_default_names(source, columns, domain)
    if estimated is None:
        return own, table, Columns(behavior_prob=columns.behavior_prob)
    table, kept = _with_estimates(table, domain, estimated, source), Columns(behavior_prob=ESTIMATED)
    return _behavior(open_log(table), kept, **settings), table, kept


def _behavior(source: Source, columns: Columns, unweighted: bool = False, **settings: Any) -> Evaluation:
    """Return the behaviour policy's own value, from a scan that also checks all columns that later scans read."""
    log = source.lazy() if source.is_query else source
    if unweighted:  # its probabilities are estimated later
        return evaluate(log, estimators=["mc"], columns=columns, **settings)
    logged = columns.with_estimates(source.columns).need("behavior_prob", source.columns)
    policies = {"itself": PolicyColumns(target_prob=logged)}
    settings["diagnostics"] = False
    return evaluate(log, estimators=["mc", "is"], columns=columns, policies=policies, **settings)


def _check_unchanged(source: Source, own: Evaluation) -> None:
    """Refuse a log that has changed since the behaviour policy was evaluated; a query is read once more."""
    source.check_unchanged()
    if source.is_query:
        own.samples.scan(own.samples.plan, _core.Pass.FIRST, None)


def _eligible(score: Score, require: str) -> Score:
    """Mark a candidate whose verdict is worse than required as not eligible."""
    if score.score is None or score.verdict is None or score.verdict.level in at_least(require):
        return score
    why = f"its verdict is worse than {require!r}, which is required"
    return replace(score, eligible=False, reason=why if score.reason is None else f"{score.reason}; {why}")


def _ranked(scores: list[Score]) -> list[Score]:
    """Return the candidates with a score, the highest first; equals keep their order."""
    return sorted((score for score in scores if score.score is not None), key=_score, reverse=True)


def _score(score: Score) -> float:
    assert score.score is not None
    return score.score


def _table(scores: list[Score], ranked: list[Score]) -> pl.DataFrame:
    ranks = {score.candidate.name: rank for rank, score in enumerate(ranked, start=1)}
    rows = [
        {
            **{name: getattr(score, name, None) for name in SCHEMA},
            "candidate": score.candidate.name,
            "rank": ranks.get(score.candidate.name),
            "verdict": score.verdict and score.verdict.level,
        }
        for score in scores
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


def _with_default_names(source: Source, columns: Columns, domain: Setting) -> Any:
    """Return the log with the default names of columns, the only ones that generators and fitters know."""
    renamed = default_names(columns, domain, source.columns)
    if not renamed and not columns.unread:
        return source.reopened()
    return source.as_polars().with_columns(renamed).drop(columns.unread, strict=False)


def _with_estimates(table: Any, domain: Setting, how: dict[str, Any], keep: Source) -> Any:
    """Return the log with the behaviour policy's probabilities, those of each part estimated from the other part."""
    log = open_log(table).as_polars()
    made = behavior_columns(log, domain, partial(fold_of, folds=PARTS), PARTS, keep=keep, **how)
    return log.drop(SCORE, strict=False).with_columns(made)
