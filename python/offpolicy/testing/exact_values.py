"""Comparison of a domain's own exact value of a policy with the mean of simulated returns.

The two may differ by six standard errors plus the effect of an event that is too rare to be seen: n episodes miss an
event of probability 20/n with a probability of e^-20.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from offpolicy.protocols import Policy
from offpolicy.testing.faults import Faults

EPISODES = 4000
ERRORS, UNSEEN = 6.0, 20.0


def check_value(faults: Faults, domain: Any, policy: Policy, who: str, seed: int) -> None:
    """Note a `value(policy)`, if the domain has one, that is not a number or that simulation contradicts."""
    if getattr(domain, "value", None) is None:
        return
    with faults.calling("value", f"value({who})"):
        said = domain.value(policy)
        if not faults.expect(
            isinstance(said, int | float | np.integer | np.floating) and math.isfinite(said),
            "value",
            f"value({who}) is {said!r}",
            "value(policy) is the expected discounted return of a policy over the horizon, a finite number",
            "return a float, or leave value out",
        ):
            return
        log = domain.simulate(policy, EPISODES, seed)
        returns = np.zeros(EPISODES)
        np.add.at(
            returns, log["episode"].to_numpy(), log["reward"].to_numpy() * domain.discount ** log["step"].to_numpy()
        )
        mean, error = float(returns.mean()), float(returns.std(ddof=1)) / math.sqrt(EPISODES)
        low, high = domain.reward_range
        spread = (high - low) * float((float(domain.discount) ** np.arange(domain.horizon)).sum())
        faults.expect(
            abs(said - mean) <= ERRORS * error + UNSEEN * spread / EPISODES,
            "value",
            f"value({who}) is {said:.6g}, and {EPISODES} simulated episodes earn {mean:.6g} ± {error:.2g}",
            "value(policy) is the expected discounted return of a policy over the horizon, from the states of reset",
            "compare both for a short horizon; look for the discount, the last step, and rewards of the last state",
        )
