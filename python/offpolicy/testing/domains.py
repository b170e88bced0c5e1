"""The conformance suite for domains."""

from __future__ import annotations

from typing import Any

import numpy as np

from offpolicy.testing.attributes import check_attributes
from offpolicy.testing.dynamics import check_dynamics, check_reset, visited
from offpolicy.testing.exact_values import check_value
from offpolicy.testing.faults import Faults
from offpolicy.testing.logs import check_log
from offpolicy.testing.policies import check_policy
from offpolicy.testing.spaces import check_grid, check_legal
from offpolicy.testing.transition_laws import check_law


def check_domain(domain: Any, episodes: int = 200, seed: int = 0) -> None:
    """Raise a `ConformanceError` that lists everything that breaks the protocol of a domain, or return None.

    The domain is used as simulations, fitters and policies would use it: its attributes, first states, steps, legal
    actions, policies, a log of some episodes, and, if it has them, grid, transition probabilities and exact values.

    >>> from dataclasses import replace
    >>> from offpolicy.testing import Walk, check_domain
    >>> check_domain(replace(Walk(), reward_range=(0.0, 1.0)))
    Traceback (most recent call last):
        ...
    offpolicy.testing.faults.ConformanceError: domain 'walk' breaks the protocol in 1 way
      [reward-range] step gave a reward of -0.05
          the protocol: rewards lie in reward_range = (0.0, 1.0)
          to mend it: widen reward_range to what can happen, or mend the reward
    """
    faults = Faults(f"domain {getattr(domain, 'name', type(domain).__name__)!r}")
    if check_attributes(faults, domain) and check_reset(faults, domain, seed):
        states, ended = visited(domain, seed)
        legal = check_legal(faults, domain, states)
        sound = check_dynamics(faults, domain, states, legal, seed)
        if sound:
            check_law(faults, domain, states, legal, seed)
        named = {"behavior": domain.behavior, **_others(domain)}
        for name, policy in named.items():
            usable = check_policy(faults, policy, f"policy {name!r}", states, domain.actions, legal, domain.horizon)
            if name == "behavior" and usable and sound:
                check_log(faults, domain, policy, episodes, seed)
            if usable and sound:
                check_value(faults, domain, policy, f"policy {name!r}", seed)
        check_grid(faults, domain, np.concatenate([states, ended]))
    faults.raise_any()


def _others(domain: Any) -> dict[str, Any]:
    """Return the domain's named policies, each given as a policy or as a function that makes one."""
    named = getattr(domain, "policies", {})
    return {name: made if hasattr(made, "probabilities") else made() for name, made in named.items()}
