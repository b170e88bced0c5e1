"""Safe policy improvement, Jiang & Li (2016), section 6.2: the policy with the highest lower bound, if that is enough.

    π* = argmax_π V(π) − C σ(π)    if max_π V(π) − C σ(π) > V(π0),    otherwise π0

Each candidate is evaluated on D ∖ D_train, where D_train is what it was made of, and which also serves for Q̂. V(π0) is
the mean return of all of D. C ≥ 0 is caution: at 0 the best point estimate wins, and with more of it no score grows, so
that a behaviour policy that is kept stays kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import polars as pl

from offpolicy import _core, plugins
from offpolicy.bounds import Bounds
from offpolicy.candidates import find_candidates
from offpolicy.columns import DEFAULT, Columns, PolicyColumns
from offpolicy.errors import UsageError
from offpolicy.estimators import AVERAGED, WEIGHTED, check_ids
from offpolicy.evaluate import ProgressFunction, evaluate
from offpolicy.evaluation import Evaluation
from offpolicy.improvement import SCHEMA, BehaviorValue, Improvement
from offpolicy.lower_bound import LowerBound
from offpolicy.plan import BEHAVIOR
from offpolicy.protocols import Generator, ModelFitter, Policy, Setting
from offpolicy.scoring import Score, Scoring
from offpolicy.sources import FrameSource, ParquetSource, Source, open_log

#: What generators and fitters read of a log besides its states.
READ = ("episode", "step", "reward", "action", "terminal")


def improve(
    log: Any,
    domain: Setting | str,
    *,
    generator: str | Generator | Mapping[str, Policy] = "mixture",
    fitter: str | ModelFitter = "tabular",
    estimator: str = "dr",
    caution: float | None = None,
    interval: str | None = None,
    confidence: float | None = None,
    train_fraction: float = 0.5,
    columns: Columns | None = None,
    baseline: float | None = None,
    bounds: Bounds | None = None,
    truncation: str | None = None,
    threads: int | None = None,
    progress: ProgressFunction | None = None,
) -> Improvement:
    """The candidate with the highest lower bound, if that is above the value of the behaviour policy.

    Parameters
    ----------
    log
        Any log that `evaluate` reads.
    domain
        What the log does not say: `op.domain(...)` or its name, or `op.LoggedDomain(...)`. Its discount and horizon are
        those of all values.
    generator
        Where candidates come from: a name, such as `"mixture"`, the paper's; any object with
        `candidates(log, domain)`; or a mapping of names to policies, which must not be made from this log.
    fitter
        Fits Q̂ to D_train, by name or as an object; a generator that is named and takes a fitter gets it too. But a
        candidate that brings a model of its D_train is evaluated with that.
    estimator
        One that averages values of trajectories: `is`, `step-is`, `dr`, `dr-bsl` or `dr-v2`.
    caution
        C of the score V − Cσ, at least 0; 1 by default.
    interval, confidence, bounds
        Another score: the lower bound of this level, 0.95 by default, by the interval of that name, and what is known
        for certain where the interval needs it (of rewards, what the domain knows); as in `evaluate`, but one-sided.
    train_fraction
        How much of the log Q̂ gets where a candidate was made from none of it and the estimator needs Q̂.
    columns, baseline, truncation, threads
        As in `evaluate`; states are in the columns that the domain names.
    progress
        Called with the candidates evaluated so far, and all of them (None until they are known).

    Examples
    --------
    >>> import offpolicy as op
    >>> from offpolicy.testing import Walk
    >>> walk = Walk()
    >>> best = op.improve(walk.simulate(walk.behavior, 500, seed=1), walk, estimator="dr", caution=2.0)
    >>> best.winner, round(best.behavior.value, 3), round(best.candidates["score"].max(), 3)
    ('train 0.2, alpha 0', -0.009, 0.728)
    """
    setting = plugins.domain(domain) if isinstance(domain, str) else domain
    if bounds is None and interval is not None:
        bounds = Bounds.of(setting)
    bound = LowerBound.chosen(caution, interval, confidence, bounds)
    check_estimator(estimator, baseline)
    if not 0 < train_fraction < 1:
        raise UsageError(f"train_fraction must be between 0 and 1, not {train_fraction}")
    columns, source = columns or Columns(), open_log(log)
    common: dict[str, Any] = {"discount": setting.discount, "horizon": setting.horizon, "truncation": truncation}
    own = _behavior(source, columns, threads=threads, **common)
    value, low = own["mc"].value, bound.of(own["mc"])
    assert value is not None
    advance = progress or (lambda done, total: None)
    advance(0, None)
    table = _with_default_names(source, columns)
    first_step = int(open_log(table).lazy().select(pl.col("step").min()).collect().item())
    found = find_candidates(generator, fitter, table, setting)
    kept = Columns(behavior_prob=columns.behavior_prob, truncated=columns.truncated)
    settings = {**common, "columns": kept, "threads": threads, "baseline": baseline}
    scoring = Scoring(table, setting, estimator, fitter, train_fraction, first_step, settings)
    scores = scoring.scores(found, bound, advance)
    ranked = _ranked(scores)
    best = ranked[0] if ranked and _score(ranked[0]) > value else None
    return Improvement(
        winner=BEHAVIOR if best is None else best.candidate.name,
        policy=getattr(setting, "behavior", None) if best is None else best.candidate.policy,
        candidates=_table(scores, ranked),
        behavior=BehaviorValue(value, own["mc"].std_error, low.low, own.episodes),
        estimator=estimator,
        bound=bound,
        kind=low.kind,
        verdict=None if best is None else best.verdict,
        notes=own.notes,
        settings={
            "domain": setting.name,
            "generator": _name(generator),
            "fitter": _name(fitter),
            "estimator": estimator,
            "caution": bound.caution,
            "interval": bound.method,
            "confidence": bound.confidence,
            "train_fraction": train_fraction,
            **common,
            "baseline": baseline,
            "bounds": None if bounds is None else asdict(bounds),
            "columns": asdict(columns),
        },
        sources=source.files(),
        version=_core.__version__,
    )


def check_estimator(estimator: str, baseline: float | None) -> None:
    """Refuses what does not average values of trajectories, with the reason."""
    check_ids([estimator])
    others = f"choose one of {', '.join(AVERAGED)}"
    if estimator in WEIGHTED:
        raise UsageError(
            f"estimator {estimator!r} is a ratio of sums, biased in small samples and no average of the values of "
            f"trajectories, which V − Cσ is made for; {others}"
        )
    if estimator == "mc":
        raise UsageError(f"estimator 'mc' is the value of the behaviour policy, whatever the candidate; {others}")
    if estimator == "reg":
        raise UsageError(f"the standard error of 'reg' knows nothing of its model's bias: it bounds nothing; {others}")
    if estimator == "dr-bsl" and baseline is None:
        raise UsageError("estimator 'dr-bsl' needs baseline=, the constant c of its guess")


def _behavior(source: Source, columns: Columns, **settings: Any) -> Evaluation:
    """The behaviour policy's own value, from a scan that checks all that later ones read, its probabilities too."""
    logged = columns.with_estimates(source.columns).need("behavior_prob", source.columns)
    policies = {"itself": PolicyColumns(target_prob=logged)}
    return evaluate(
        _again(source), estimators=["mc", "is"], columns=columns, policies=policies, diagnostics=False, **settings
    )


def _ranked(scores: list[Score]) -> list[Score]:
    """Those with a score, the highest first; of equals the first comes first."""
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


def _again(source: Source) -> Any:
    """A log that can be read again, in the form that is read fastest; a stream was written to a file by now."""
    if isinstance(source, FrameSource):
        return source.frame
    return source.paths if isinstance(source, ParquetSource) else source.lazy()


def _with_default_names(source: Source, columns: Columns) -> Any:
    """The log as generators and fitters read it, who know columns by their default names alone."""
    if columns.state:
        raise UsageError("the columns of the state are those that the domain names in state_columns")
    roles = [role for role in READ if columns.renamed(role)]
    renamed = {columns.need(role, source.columns): getattr(DEFAULT, role) for role in roles}
    if not renamed:
        return _again(source)
    hidden = [name for name in renamed.values() if name in source.columns and name not in renamed]
    log = source.frame if isinstance(source, FrameSource) else source.lazy()
    return log.drop(hidden).rename(renamed)


def _name(thing: Any) -> str:
    """What the result calls a generator or fitter."""
    if isinstance(thing, str):
        return thing
    return "policies" if isinstance(thing, Mapping) else type(thing).__name__
