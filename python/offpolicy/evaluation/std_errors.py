"""Standard errors for episodes that come in clusters, and for weights with estimated probabilities.

    SE² = G/(G − 1) · (n − 1)/(n − 1 − p) · Σ_g (Σ_{i in g} (x_i − x̄))² / n²  +  what is outside the log

The sum is over G clusters g (`offpolicy.logs.clusters`), or over single trajectories with G = n. x_i is the influence
value of trajectory i. Where π̂0 was estimated with p parameters, its projection on the score of π̂0 is subtracted, and
episodes that are not evaluated themselves add the last term (`offpolicy.evaluation.propensity_score`). The influence
values of an estimate take one more scan, and estimated probabilities take three more readings of the score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from offpolicy._util import words
from offpolicy._util.exact_sums import exact_dot, exact_sum
from offpolicy._util.phrase import phrase
from offpolicy.errors import TooLargeError
from offpolicy.evaluation.estimate import Estimate
from offpolicy.evaluation.estimators import describe
from offpolicy.evaluation.plan import BEHAVIOR, Plan, Probabilities, RatioForm
from offpolicy.evaluation.propensity_score import Projection, ScoredLog, UnaccountedError
from offpolicy.logs.columns import ESTIMATED, SCORE
from offpolicy.logs.trajectories import Samples
from offpolicy.protocols import Floats

#: The number of trajectories or clusters per parameter of π̂0 from which on standard errors account for its estimation.
FOR_EACH_PARAMETER = 10
#: The least share of a standard error that may remain after the projection. Where less remains, terms of second order
#: decide, which the formula leaves out: 95% intervals covered 80% where cell and action determine the reward. The
#: larger error is then kept.
LEAST_LEFT = 0.5


@dataclass(frozen=True, eq=False)
class Influence:
    """The influence values of one estimate, with mean 0 and divided by a power of 2 that brings them below 1."""

    episodes: pl.Series
    values: Floats
    exponent: int

    @classmethod
    def of(cls, samples: Samples, estimate: Estimate) -> Influence:
        """Read the influence values of an estimate from the log."""
        found = samples.influence(estimate.policy, estimate.estimator)
        psi = found["value"].to_numpy()
        exponent = int(np.frexp(np.abs(psi).max())[1])
        scaled = np.ldexp(psi, -exponent)
        return cls(found["episode"], scaled - float(exact_sum(scaled) / len(psi)), exponent)


def by_cluster(estimates: Sequence[Estimate], samples: Samples) -> tuple[Estimate, ...]:
    """Return every estimate with its standard error by cluster, or with the reason why it has none."""
    return tuple(_by_cluster(estimate, samples) for estimate in estimates)


def _by_cluster(estimate: Estimate, samples: Samples) -> Estimate:
    assert samples.clusters is not None
    missing = None
    if describe(estimate.estimator).blended:
        missing = f"{estimate.estimator} has no influence values of single trajectories to add up by cluster"
    elif samples.clusters.count == 1:
        missing = f"all episodes are of one cluster (column {samples.clusters.column!r})"
    elif estimate.std_error is not None:
        try:
            return _with_error(estimate, Influence.of(samples, estimate), samples, None, 0)
        except TooLargeError as why:
            missing = why.message
    return replace(estimate, std_error=None, withheld=estimate.withheld or missing)


def with_estimated_behavior(
    estimates: Sequence[Estimate], samples: Samples, log: ScoredLog | None, passes: int
) -> tuple[tuple[Estimate, ...], str]:
    """Return the estimates with standard errors that account for the estimation of π0 if possible, and a note on it."""
    with_error = [e for e in estimates if e.std_error is not None and not describe(e.estimator).blended]
    weighted = [e for e in with_error if _scored(e, samples)]
    start = f"the behaviour probabilities were estimated (column {ESTIMATED!r})"
    if all(not describe(e.estimator).uses_weights or _of_itself(e, samples) for e in estimates):
        return tuple(estimates), start
    start += ": standard errors"
    try:
        if log is None or not weighted:
            raise UnaccountedError
        if passes == 1:
            raise UnaccountedError(phrase("that takes {passes}", passes=words.TWO_PASSES))
        influence = [Influence.of(samples, estimate) for estimate in weighted]
        found = log.project(influence[0].episodes, np.stack([each.values for each in influence], axis=1))
        units = influence[0].values.size if samples.clusters is None else samples.clusters.count
        if FOR_EACH_PARAMETER * found.parameters > units:
            what = "episodes" if samples.clusters is None else "clusters"
            raise UnaccountedError(f"{found.about}: {found.parameters} parameters are too many for {units} {what}")
    except (UnaccountedError, TooLargeError) as why:
        known = f"{start} and intervals take them as known"
        return tuple(estimates), phrase("{known} ({why})", known=known, why=why.args[0]) if why.args else known
    new = {
        estimate.key: _with_error(estimate, each, samples, found, number)
        for number, (estimate, each) in enumerate(zip(weighted, influence, strict=True))
    }
    old = {estimate.key: estimate.std_error or 0.0 for estimate in weighted}
    new = {key: e for key, e in new.items() if e.std_error is None or e.std_error >= LEAST_LEFT * old[key]}
    if not new:
        little = "the estimation explains nearly all of their spread, and what is left is too small to be trusted"
        return tuple(estimates), f"{start} and intervals take them as known ({little})"
    others = [e.estimator for e in estimates if e.key not in new and describe(e.estimator).uses_weights]
    but = f" but those of {', '.join(dict.fromkeys(others))}" if others else ""
    note = f"{start}{but} account for the estimation ({found.about}), and so do the intervals t and normal"
    return tuple(new.get(estimate.key, estimate) for estimate in estimates), note


def scored_log(plan: Plan, samples: Samples, steps: int) -> ScoredLog | None:
    """Return the log with the scores that `estimate_behavior` wrote, or None if it has them no longer."""
    source = samples.source
    if SCORE not in source.columns:
        return None
    return ScoredLog(source, plan.columns.episode, plan.columns.find("action", source.columns), steps)


def _scored(estimate: Estimate, samples: Samples) -> bool:
    """Return True if the weights are quotients of target and estimated probabilities, and not those of a mixture."""
    plain = not describe(estimate.estimator).uses_weights or _of_itself(estimate, samples)
    return not plain and isinstance(_ratio(estimate, samples), Probabilities)


def _of_itself(estimate: Estimate, samples: Samples) -> bool:
    """Return True if the estimate is of the behaviour policy, estimated or not, so that all weights are 1."""
    form = _ratio(estimate, samples)
    return estimate.policy == BEHAVIOR or (isinstance(form, Probabilities) and form.target == ESTIMATED)


def _ratio(estimate: Estimate, samples: Samples) -> RatioForm | None:
    return next((policy.ratio for policy in samples.plan.policies if policy.name == estimate.policy), None)


def _with_error(
    estimate: Estimate, influence: Influence, samples: Samples, projection: Projection | None, number: int
) -> Estimate:
    n, x, p, outside = influence.values.size, influence.values, 0, 0.0
    clusters = samples.clusters

    def sums(values: Floats) -> Floats:
        return values if clusters is None else clusters.sums(influence.episodes, values)

    if projection is not None:
        taken, p = projection.values[:, number], projection.parameters
        x = x - projection.shares * taken
        x = x - float(exact_sum(x) / n)
        outside = projection.outside * float(exact_dot(sums(taken), sums(taken)) / n)
    d = sums(x)
    total = float(exact_dot(d, d))
    groups = d.size
    variance = groups / (groups - 1) * (n - 1) / (n - 1 - p) * total / n**2 + outside
    try:
        error: float | None = math.ldexp(math.sqrt(variance), influence.exponent)
    except OverflowError:
        error = None
    return replace(
        estimate,
        std_error=error,
        degrees=groups - 1 if clusters is not None else n - 1 - p,
        cluster_share=None if clusters is None else float(np.square(d).max()) / total if total else 0.0,
    )
