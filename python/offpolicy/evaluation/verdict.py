"""Rules that decide whether an estimate can be trusted, and what to do next. The worst finding of all rules counts.

The first rules judge the weights c_H of a policy over n episodes, from the table of `offpolicy.diagnostics`. Their mean
is c̄, and m is the smaller of two effective sample sizes: ESS = (Σc)²/Σc² of the weights, and the one that the ratios of
single steps predict.

    unusable   The number m is below 10: the log has too few episodes for so different a policy.
               |c̄ − 1| is above 0.1 and above 5 standard errors of c̄, observed and predicted: propensities are wrong,
               or the target policy takes actions that the log never shows. No number of episodes helps.
    fragile    The number m is below 30, unless the weights are nearly equal (m is at least 0.9 n) and n is at least 20.
               Products of several ratios have a predicted γ²/n = n²/ESS³ above 1, or above ¼ for estimators such as is
               and wis, which weight all rewards by them: most logs lack the weights that matter most, whatever this
               one shows.
               ESS is more than 1.5 times the predicted one: the log lacks large weights.
               |c̄ − 1| is above 0.001, which rounded probabilities may cause, and above 2.5 standard errors of c̄.
               The e-value against the logged probabilities is at least 1000.

The observed standard error of c̄ is c̄ √(1/ESS − 1/n), and the predicted one is √(1/m − 1/n). Further rules judge one
estimate, where γ is the skewness of what the trajectories add to it:

    fragile    One trajectory has more than 30% of the variance, or more than 8% and γ²/n is above 0.02: a t interval
               of skewed values covers about γ²/(4n) less than it says (Hall 1992); one of symmetric values does not.
               The weights may have infinite variance, k̂ > ½, and one trajectory has more than 5% of the variance.
               The share of one trajectory is not known, or no two trajectories differ, so that nothing tells the error.
               The rewards that truncated episodes lack can move it by more than ½ of its standard error, where 95%
               intervals cover 92%. Beyond 10 standard errors it is unusable.
               The task goes on after the horizon, and later rewards can add more than ½ of its standard error.
               The control variate of dr or wdr is further from 0 than 5 of its standard errors and than rounding, so
               that v_hat does not belong to q_hat.
               Nothing in the log can tell its bias: it uses no weights, blends a model in as magic does, takes a
               model's transitions for the true ones as dr-v2 does without P̂/P, or declares a bias as estimators of
               plugins may do.

docs/results/verdict shows what the rules do on problems whose true values are known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from offpolicy.evaluation import advice
from offpolicy.evaluation.estimate import Estimate
from offpolicy.evaluation.estimators import describe

#: The effective sample size that advice aims at, and those below which weights are fragile and unusable.
ENOUGH, FRAGILE_BELOW, UNUSABLE_BELOW = 100, 30, 10
#: The predicted γ²/n of weights above which they are fragile, in general and for estimators that weight whole returns.
FAR, FAR_WHOLE = 1, 0.25
#: The largest ratio of the observed to the predicted effective sample size that is not fragile.
LACKING = 1.5
#: A log of at least `FEWEST` episodes whose effective sample size is this share of them is not fragile for being small.
FEWEST, NEARLY_EQUAL = 20, 0.9
#: How far the mean weight may be from 1, in standard errors and as a number, before it is fragile and unusable.
MEAN_ERRORS, MEAN_ROUNDING = 2.5, 0.001
UNUSABLE_ERRORS, UNUSABLE_DISTANCE = 5, 0.1
#: The log10 of the e-value from which on the logged probabilities are taken as wrong.
EVIDENCE = 3
#: The share of one trajectory in the variance above which a standard error cannot be trusted, for any values and for
#: skewed ones. Values are skewed if γ²/n is above the last number.
CONCENTRATED, CONCENTRATED_LEANING, LEANING = 0.3, 0.08, 0.02
#: The shape of a tail above which weights may have infinite variance, and the share of a trajectory above which that
#: matters.
HEAVY, HEAVY_SHARE = 0.5, 0.05
#: The number of standard errors by which missing rewards may move an estimate before it is fragile, and unusable.
CUT_OFF_ERRORS, UNUSABLE_CUT_OFF = 0.5, 10
#: The number of standard errors that the control variate may be from 0, and the share of an estimate that is rounding.
CONTROL_ERRORS, ROUNDING = 5, 1e-9
LEVELS = ("reliable", "fragile", "unusable")


@dataclass(frozen=True)
class Verdict:
    """A level, `reliable`, `fragile` or `unusable`, with the rule that decided and advice on what to do next.

    >>> import offpolicy as op
    >>> print(op.evaluate(op.demo_log(episodes=20), discount=0.9).verdict.level)
    unusable
    """

    level: str
    rule: str
    policy: str
    advice: str = ""

    def __str__(self) -> str:
        """Return the level, the rule and the advice in one line."""
        return f"{self.level}: {self.rule}" + (f". Next: {self.advice}" if self.advice else "")


class Finding(NamedTuple):
    """The level, words and advice that one rule gives."""

    level: str
    rule: str
    advice: str

    def of(self, policy: str) -> Verdict:
        """Return the verdict on a policy for which this finding is the worst."""
        return Verdict(self.level, f"{self.rule} (policy {policy!r})", policy, self.advice)


def judge(row: Mapping[str, Any], episodes: int) -> Verdict:
    """Return the verdict on a policy's weights, the worst that any rule finds in its row of the diagnostics."""
    rules = (_beyond_floats, _few_weights, _far_policy, _wrong_weights, _evidence)
    found = [finding for rule in rules for finding in rule(row, episodes)]
    return _worst_of(found).of(row["policy"])


def judge_estimate(
    weights: Verdict,
    row: Mapping[str, Any],
    estimate: Estimate,
    share: float | None,
    skewness: float | None,
    beyond: float = 0.0,
) -> Verdict:
    """Return the verdict on one estimate, which is that on its weights unless a rule for estimates finds worse.

    `share` is the largest share of one trajectory in the variance, and `beyond` is the most that rewards after the
    horizon can add where the task goes on.
    """
    about = describe(estimate.estimator)
    found = [
        *_trusts_a_model(estimate),
        *(_far_policy(row, estimate.episodes, FAR_WHOLE) if about.weights_returns else []),
        *_concentrated(estimate, share, skewness),
        *_heavy_tail(row, estimate, share),
        *(_wrong_model(row, estimate) if about.without_control else []),
        *_cut_off(row, estimate),
        *_goes_on(estimate, beyond),
    ]
    own = _worst_of(found) if found else None
    if own is None or LEVELS.index(own.level) <= LEVELS.index(weights.level):
        return weights
    return own.of(weights.policy)


def best(verdicts: Mapping[str, Verdict]) -> Verdict:
    """Return the verdict on the best estimate of a policy, with the names of the estimates that are worse."""
    found = min(verdicts.values(), key=lambda verdict: LEVELS.index(verdict.level))
    worse = [name for name, verdict in verdicts.items() if verdict.level != found.level]
    return replace(found, rule=f"{found.rule}; less so: {', '.join(worse)}") if worse else found


def worst(verdicts: list[Verdict]) -> Verdict:
    """Return the worst verdict, which counts when there are several policies."""
    return max(verdicts, key=lambda verdict: LEVELS.index(verdict.level))


def unweighted(policy: str) -> Verdict:
    """Return the verdict on an estimate without weights, whose model nothing in the log can check."""
    rule = f"no estimate of policy {policy!r} uses weights, and nothing in the log can tell whether its model is right"
    return Verdict("fragile", rule, policy, advice.LOG_PROBABILITIES)


def none_of(policy: str) -> Verdict:
    """Return the verdict on a policy of which nothing was estimated."""
    rule = f"nothing was estimated of policy {policy!r}: its columns are missing, or no estimator of it was asked for"
    return Verdict("unusable", rule, policy, advice.ASK)


def _worst_of(found: list[Finding]) -> Finding:
    return max(found, key=lambda each: LEVELS.index(each.level))


def _size(row: Mapping[str, Any]) -> float:
    """Return m, the smaller of the observed and the predicted effective sample size."""
    predicted = row["predicted_ess"]
    return float(row["ess"] if predicted is None else min(row["ess"], predicted))


def _few_weights(row: Mapping[str, Any], n: int) -> Iterator[Finding]:
    size, ess = _size(row), row["ess"]
    shown = f"effective sample size {ess:.1f} of {n}"
    if f"{size:.3g}" != f"{ess:.3g}":
        shown += f", {size:.3g} as its ratios predict,"
    nearly_all = n >= FEWEST and size >= NEARLY_EQUAL * n
    if size >= FRAGILE_BELOW or nearly_all:
        why = f"is at least {FRAGILE_BELOW}" if size >= FRAGILE_BELOW else "is nearly all of them"
        largest = f"the largest weight has {row['largest_share']:.1%} of the total"
        yield Finding("reliable", f"{shown} {why}; {largest}", advice.USE)
        return
    level, limit = ("unusable", UNUSABLE_BELOW) if size < UNUSABLE_BELOW else ("fragile", FRAGILE_BELOW)
    cause = "too few episodes" + (" for so different a policy" if size < NEARLY_EQUAL * n else "")
    yield Finding(level, f"{cause}: {shown} is below {limit}", _enough(row, n))


def _far_policy(row: Mapping[str, Any], n: int, limit: float = FAR) -> Iterator[Finding]:
    predicted, leaning = row["predicted_ess"], row["predicted_leaning"]
    cause = "too few episodes for so different a policy"
    if leaning is not None and leaning > limit:
        rule = f"products of its ratios have a predicted γ²/n of {leaning:.2g}, above {limit:g}"
        nearer = advice.more_episodes(n * leaning / limit, True, row["enough_alpha"])
        yield Finding("fragile", f"{cause}: {rule}", nearer)
    elif predicted is not None and row["ess"] > LACKING * predicted:
        rule = f"effective sample size {row['ess']:.1f} of {n} where its ratios predict {predicted:.3g}"
        yield Finding("fragile", f"{cause}: {rule}, so that large weights are missing", _enough(row, n))


def _enough(row: Mapping[str, Any], n: int) -> str:
    """Return advice on how to reach an effective sample size of 100, with at least twice the episodes."""
    size = _size(row)
    needed = max(n * ENOUGH / size, 2 * n) if size > 0 else math.inf
    return advice.more_episodes(needed, size < NEARLY_EQUAL * n, row["enough_alpha"])


def _beyond_floats(row: Mapping[str, Any], _: int) -> Iterator[Finding]:
    if row["mean_weight"] is None:
        rule = "the mean weight is beyond the range of f64 where 1 is expected: the logged probabilities are wrong"
        yield Finding("unusable", rule, advice.CHECK_PROBABILITIES)


def _wrong_weights(row: Mapping[str, Any], n: int) -> Iterator[Finding]:
    mean, ess = row["mean_weight"], row["ess"]
    if mean is None or ess <= 0:
        return
    off, seen, predicted = abs(mean - 1), mean * _error(ess, n), _error(_size(row), n)
    if off <= max(MEAN_ROUNDING, MEAN_ERRORS * seen):
        return
    rule = f"the mean weight is {mean:.3g} where 1 is expected"
    if off <= MEAN_ERRORS * predicted:
        lacks = "the log lacks large weights, for it has too few episodes for so different a policy"
        yield Finding("fragile", f"{rule}: {lacks}", _enough(row, n))
        return
    hopeless = off > max(UNUSABLE_DISTANCE, UNUSABLE_ERRORS * max(seen, predicted))
    yield Finding(
        "unusable" if hopeless else "fragile",
        f"{rule}: the logged probabilities are wrong, or the target policy takes actions that the log never shows",
        advice.CHECK_PROBABILITIES,
    )


def _error(size: float, n: int) -> float:
    """Return the standard error of the mean of n weights with expectation 1 and this effective sample size."""
    return math.sqrt(max(1 / size - 1 / n, 0.0)) if size > 0 else math.inf


def _evidence(row: Mapping[str, Any], _: int) -> Iterator[Finding]:
    evidence = row["log10_e_value"]
    if evidence is not None and evidence >= EVIDENCE:
        rule = (
            f"the mean ratio is {row['mean_ratio']:.6g} where at most 1 is expected (e-value 10^{evidence:.1f}): the "
            "logged probabilities are wrong"
        )
        yield Finding("fragile", rule, advice.CHECK_PROBABILITIES)


def _concentrated(estimate: Estimate, share: float | None, skewness: float | None) -> Iterator[Finding]:
    name, n = estimate.estimator, estimate.episodes
    if share is None:
        rule = f"how much of the variance of {name} one trajectory has is not known"
        yield Finding("fragile", rule, advice.READ_TWICE)
        return
    leans, whole = skewness is None or skewness**2 / n > LEANING, describe(name).weights_returns
    if share > (CONCENTRATED_LEANING if leans else CONCENTRATED):
        rule = f"one trajectory has {share:.0%} of the variance of {name}"
        yield Finding("fragile", rule, advice.spread(n * share / CONCENTRATED_LEANING, whole))
    elif estimate.std_error is not None and estimate.std_error <= ROUNDING * abs(estimate.value or 0.0):
        rule = f"no two trajectories differ in {name}, so that nothing tells its error"
        yield Finding("fragile", rule, advice.BOUND)


def _heavy_tail(row: Mapping[str, Any], estimate: Estimate, share: float | None) -> Iterator[Finding]:
    k = row["k_hat"]
    if k is not None and k > HEAVY and share is not None and share > HEAVY_SHARE:
        tail = f"the weights have a heavy tail, k̂ = {k:.2f} is above {HEAVY:.2f}"
        rule = f"{tail}, and one trajectory has {share:.0%} of the variance of {estimate.estimator}"
        yield Finding("fragile", rule, advice.COME_NEARER)


def _trusts_a_model(estimate: Estimate) -> Iterator[Finding]:
    name, about = estimate.estimator, describe(estimate.estimator)
    if about.blended:
        rule = f"{name} leans on a model, and nothing in the log can tell its bias"
        yield Finding("fragile", rule, advice.WITHOUT_MODEL)
    if about.unbiased == "never":
        rule = f"{name} is biased, and nothing in the log can tell by how much"
        yield Finding("fragile", rule, advice.WITHOUT_MODEL)
    if about.model == "transitions" and not estimate.terms.transition_ratio:
        rule = f"{name} takes the model's transitions for the true ones, and nothing in the log can tell its bias"
        yield Finding("fragile", rule, advice.WITHOUT_MODEL)


def _wrong_model(row: Mapping[str, Any], estimate: Estimate) -> Iterator[Finding]:
    mean, error = row["control_variate"], row["control_error"]
    rounding = ROUNDING * (abs(estimate.value or 0.0) + (estimate.std_error or 0.0))
    if mean is not None and error is not None and abs(mean) > max(CONTROL_ERRORS * error, rounding):
        rule = (
            f"the control variate of dr is {mean:.3g}, {abs(mean) / error if error else math.inf:.1f} standard errors "
            "from 0: v_hat is not the mean of q_hat under the target policy, or the weights are wrong"
        )
        yield Finding("fragile", rule, advice.MEND_MODEL)


def _cut_off(row: Mapping[str, Any], estimate: Estimate) -> Iterator[Finding]:
    done, bias, error = estimate.terms.mended, row["cut_off_bias"], estimate.std_error
    if not done or bias == 0:
        return
    if bias is None or error is None:
        yield Finding("fragile", f"{done}, and how much that matters is not known", advice.LOG_TO_THE_END)
        return
    errors = bias / error if error else math.inf
    if errors > CUT_OFF_ERRORS:
        rule = f"{done}: the rewards they lack can move {estimate.estimator} by {errors:.2g} of its standard errors"
        yield Finding("unusable" if errors > UNUSABLE_CUT_OFF else "fragile", rule, advice.LOG_TO_THE_END)


def _goes_on(estimate: Estimate, beyond: float) -> Iterator[Finding]:
    if beyond > CUT_OFF_ERRORS * (estimate.std_error or 0.0):
        rule = (
            f"the task goes on, and later rewards can add {beyond:.3g} to {estimate.estimator}, which its error omits"
        )
        yield Finding("fragile", rule, advice.LOOK_FURTHER)
