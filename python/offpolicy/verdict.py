"""Whether the weights of a log can carry an estimate, with the rule that decided.

Two things are looked at, of the weights c_H of a policy: their effective sample size, (Σc)²/Σc², and their mean, which
is 1 in expectation where the logged probabilities are right and every action of the target policy is in the log:

    |c̄ − 1| > 5 SE(c̄),    SE(c̄) = c̄ √(1/ESS − 1/n)

says that one of the two is not so, and then no number of trajectories helps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

FRAGILE_BELOW = 100
UNUSABLE_BELOW = 30
#: How far the mean weight may be from 1: in standard errors, and at all.
MEAN_ERRORS, MEAN_DISTANCE = 5, 0.1
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


def judge(policy: str, ess: float, largest_share: float, mean_weight: float, episodes: int) -> Verdict:
    """The verdict on one policy, from its final weights."""
    if ess > 0 and _far_from_one(mean_weight, ess, episodes):
        rule = (
            f"the mean weight is {mean_weight:.3g} where 1 is expected: the logged probabilities are wrong, or the "
            f"target policy takes actions that the log never shows (policy {policy!r})"
        )
        return Verdict("unusable", rule, policy)
    level, bound = "reliable", f"at least {FRAGILE_BELOW}"
    if ess < UNUSABLE_BELOW:
        level, bound = "unusable", f"below {UNUSABLE_BELOW}"
    elif ess < FRAGILE_BELOW:
        level, bound = "fragile", f"below {FRAGILE_BELOW}"
    rule = (
        f"effective sample size {ess:.1f} of {episodes} is {bound}; "
        f"the largest weight has {largest_share:.1%} of the total (policy {policy!r})"
    )
    return Verdict(level, rule, policy)


def unweighted(policy: str) -> Verdict:
    """The verdict on a policy whose log has no ratio: nothing checks its model."""
    rule = f"no estimate of policy {policy!r} uses weights, and nothing in the log can tell whether its model is right"
    return Verdict("fragile", rule, policy)


def worst(verdicts: list[Verdict]) -> Verdict:
    """The one that counts when there are several policies."""
    return max(verdicts, key=lambda verdict: LEVELS.index(verdict.level))


def _far_from_one(mean: float, ess: float, n: int) -> bool:
    error = mean * math.sqrt(max(1 / ess - 1 / n, 0.0))
    return abs(mean - 1) > max(MEAN_ERRORS * error, MEAN_DISTANCE)
