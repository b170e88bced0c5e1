"""Whether the weights of a log can carry an estimate, with the rule that decided; the worst rule counts.

Of the weights c_H of a policy (`offpolicy.diagnostics` has what the rules read):

    unusable   ESS = (Σc)²/Σc² below 30
               mean weight c̄ with |c̄ − 1| > 5 SE(c̄) and > 0.1, where SE(c̄) = c̄ √(1/ESS − 1/n): wrong propensities, or
               actions of the target policy that the log never shows; no number of trajectories helps
    fragile    ESS below 100
               |c̄ − 1| > 3 SE(c̄) and > 0.001, which rounded probabilities may cause
               a heavy tail, k̂ > ½ (weights without a variance), unless the largest weight has under 0.5% of the total,
               and under 1/(2√n): the largest of a heavy tail has more
               an e-value above 1000 against the logged probabilities

and of an estimate: it is fragile if one trajectory has more than a tenth of its variance, if that is not known, or if
there is no variance at all, for then nothing tells its error; with dr and wdr, if the control variate is more than 5
standard errors from 0, and more than rounding makes it, so that v_hat does not belong to q_hat; if truncated episodes
were taken as ended, or their rewards from a model; or if it uses no weights, blends a model in as magic does, or takes
a model's transitions for the true ones as dr-v2 does without P̂/P, for then nothing in the log can tell its bias.
docs/verdict has the measurements behind these numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from offpolicy.estimate import Estimate
from offpolicy.estimators import BLENDED, TRUSTING

FRAGILE_BELOW = 100
UNUSABLE_BELOW = 30
#: How far the mean weight may be from 1, in standard errors and at all.
MEAN_ERRORS, MEAN_ROUNDING = 3, 0.001
UNUSABLE_ERRORS, UNUSABLE_DISTANCE = 5, 0.1
#: Share of one trajectory in the variance of an estimate from which on its standard error cannot be trusted.
CONCENTRATED = 0.1
#: Shape of a tail from which on weights have no variance.
HEAVY = 0.5
#: A largest weight with no more than this share of the total, and than this over √n, is no tail, whatever its shape.
SMALL_SHARE, SMALL_SHARE_BY_ROOT = 0.005, 0.5
#: log10 of the e-value from which on the logged probabilities are taken as wrong.
EVIDENCE = 3
#: The share of an estimate that is but rounding.
ROUNDING = 1e-9
#: Standard errors by which the control variate may be off.
CONTROL_ERRORS = 5
#: Estimators whose control variate that is.
MODELLED = ("dr", "wdr")
LEVELS = ("reliable", "fragile", "unusable")


@dataclass(frozen=True)
class Verdict:
    """`reliable`, `fragile` or `unusable`, and why.

    >>> import offpolicy as op
    >>> print(op.evaluate(op.demo_log(episodes=20), discount=0.9).verdict.level)
    unusable
    """

    level: str
    rule: str
    policy: str

    def __str__(self) -> str:
        """Level first."""
        return f"{self.level}: {self.rule}"


def judge(row: Mapping[str, Any], episodes: int) -> Verdict:
    """The verdict on a policy's weights, from its row of the diagnostics: the worst that any rule says."""
    whose = f"(policy {row['policy']!r})"
    found = [*_wrong_weights(row, episodes), *_few_weights(row, episodes), *_heavy_tail(row, episodes)]
    level, rule = max(found, key=lambda each: LEVELS.index(each[0]))
    return Verdict(level, f"{rule} {whose}", row["policy"])


def judge_estimate(
    weights: Verdict, row: Mapping[str, Any], estimate: Estimate, concentration: float | None
) -> Verdict:
    """The verdict on one estimate: that on the weights, unless something of its own is worse."""
    found = [
        *_leaning(estimate),
        *_concentrated(estimate, concentration),
        *(_wrong_model(row, estimate) if estimate.estimator in MODELLED else []),
        *(("fragile", why) for why in [estimate.terms.mended] if why),
    ]
    if weights.level != "reliable" or not found:
        return weights
    level, rule = found[0]
    return Verdict(level, f"{rule} (policy {weights.policy!r})", weights.policy)


def best(verdicts: Mapping[str, Verdict]) -> Verdict:
    """The verdict on a policy: that on its best estimate, with the names of those that are worse."""
    found = min(verdicts.values(), key=lambda verdict: LEVELS.index(verdict.level))
    worse = [name for name, verdict in verdicts.items() if verdict.level != found.level]
    return replace(found, rule=f"{found.rule}; less so: {', '.join(worse)}") if worse else found


def _few_weights(row: Mapping[str, Any], episodes: int) -> Iterator[tuple[str, str]]:
    ess = row["ess"]
    level, bound = "reliable", f"at least {FRAGILE_BELOW}"
    if ess < UNUSABLE_BELOW:
        level, bound = "unusable", f"below {UNUSABLE_BELOW}"
    elif ess < FRAGILE_BELOW:
        level, bound = "fragile", f"below {FRAGILE_BELOW}"
    share = f"the largest weight has {row['largest_share']:.1%} of the total"
    yield level, f"effective sample size {ess:.1f} of {episodes} is {bound}; {share}"


def _wrong_weights(row: Mapping[str, Any], episodes: int) -> Iterator[tuple[str, str]]:
    mean, ess = row["mean_weight"], row["ess"]
    if ess > 0 and (mean is None or _off(mean, ess, episodes, MEAN_ERRORS, MEAN_ROUNDING)):
        shown = "beyond the range of f64" if mean is None else f"{mean:.3g}"
        hopeless = mean is None or _off(mean, ess, episodes, UNUSABLE_ERRORS, UNUSABLE_DISTANCE)
        yield (
            "unusable" if hopeless else "fragile",
            f"the mean weight is {shown} where 1 is expected: the logged probabilities are wrong, or the target "
            "policy takes actions that the log never shows",
        )
    evidence = row["log10_e_value"]
    if evidence is not None and evidence >= EVIDENCE:
        yield (
            "fragile",
            f"the mean ratio is {row['mean_ratio']:.6g} where at most 1 is expected (e-value 10^{evidence:.1f}): the "
            "logged probabilities are wrong",
        )


def _heavy_tail(row: Mapping[str, Any], episodes: int) -> Iterator[tuple[str, str]]:
    k, small = row["k_hat"], min(SMALL_SHARE, SMALL_SHARE_BY_ROOT / math.sqrt(episodes))
    if k is not None and k > min(row["k_limit"], HEAVY) and row["largest_share"] > small:
        yield "fragile", f"the weights have a heavy tail: k̂ = {k:.2f} is above {min(row['k_limit'], HEAVY):.2f}"


def _concentrated(estimate: Estimate, share: float | None) -> Iterator[tuple[str, str]]:
    name = estimate.estimator
    if share is None:
        yield "fragile", f"how much of the variance of {name} one trajectory has is not known"
    elif share > CONCENTRATED:
        yield "fragile", f"one trajectory has {share:.0%} of the variance of {name}"
    elif (estimate.std_error or 0.0) <= ROUNDING * abs(estimate.value or 0.0):
        yield "fragile", f"no two trajectories differ in {name}, so that nothing tells its error"


def _leaning(estimate: Estimate) -> Iterator[tuple[str, str]]:
    name = estimate.estimator
    if name in BLENDED:
        yield "fragile", f"{name} leans on a model, and nothing in the log can tell its bias"
    if name in TRUSTING and not estimate.terms.transition_ratio:
        yield (
            "fragile",
            f"{name} takes the model's transitions for the true ones, and nothing in the log can tell its bias",
        )


def _wrong_model(row: Mapping[str, Any], estimate: Estimate) -> Iterator[tuple[str, str]]:
    mean, error = row["control_variate"], row["control_error"]
    rounding = ROUNDING * (abs(estimate.value or 0.0) + (estimate.std_error or 0.0))
    if mean is not None and error is not None and abs(mean) > max(CONTROL_ERRORS * error, rounding):
        yield (
            "fragile",
            f"the control variate of dr is {mean:.3g}, {abs(mean) / error if error else math.inf:.1f} standard errors "
            "from 0: v_hat is not the mean of q_hat under the target policy, or the weights are wrong",
        )


def unweighted(policy: str) -> Verdict:
    """The verdict on a policy whose log has no ratio: nothing checks its model."""
    rule = f"no estimate of policy {policy!r} uses weights, and nothing in the log can tell whether its model is right"
    return Verdict("fragile", rule, policy)


def none_of(policy: str) -> Verdict:
    """The verdict on a policy of which nothing was estimated."""
    rule = f"nothing was estimated of policy {policy!r}: its columns are missing, or no estimator of it was asked for"
    return Verdict("unusable", rule, policy)


def worst(verdicts: list[Verdict]) -> Verdict:
    """The one that counts when there are several policies."""
    return max(verdicts, key=lambda verdict: LEVELS.index(verdict.level))


def _off(mean: float, ess: float, n: int, errors: float, distance: float) -> bool:
    error = mean * math.sqrt(max(1 / ess - 1 / n, 0.0))
    return abs(mean - 1) > max(errors * error, distance)
