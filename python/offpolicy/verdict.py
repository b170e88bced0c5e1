"""Whether the weights of a log can carry an estimate, with the rule that decided."""

from __future__ import annotations

from dataclasses import dataclass

FRAGILE_BELOW = 100
UNUSABLE_BELOW = 30
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


def judge(policy: str, ess: float, largest_share: float, episodes: int) -> Verdict:
    """The verdict on one policy, from the effective sample size of its final weights."""
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


def worst(verdicts: list[Verdict]) -> Verdict:
    """The one that counts when there are several policies."""
    return max(verdicts, key=lambda verdict: LEVELS.index(verdict.level))
