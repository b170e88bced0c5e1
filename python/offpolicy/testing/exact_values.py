"""A domain's own exact value of a policy, against the mean of simulated returns.

The two may differ by six standard errors, and by what an event too rare to be seen could add: one with a probability of
20/n is missed by n episodes once in e^20 times.
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
    """Notes a `value(policy)`, where the domain has one, that is no number or that simulation contradicts."""
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
