"""Policies as tables over cells: what a finite model and a fast look-up need of them."""

from __future__ import annotations

import numpy as np

from offpolicy.policies import FromClassifier, Mixture, TabularPolicy, Uniform
from offpolicy.protocols import Floats, Policy, States


def table_at(policy: Policy, states: States, horizon: int) -> Floats:
    """π(a|s) at given states: (n, actions), or (horizon, n, actions) where it depends on the step."""
    first = policy.probabilities(states, 0)
    if is_stationary(policy):
        return first
    tables = np.stack([first, *(policy.probabilities(states, t) for t in range(1, horizon))])
    return first if (tables == first).all() else tables


def is_stationary(policy: Policy) -> bool:
    """True where the kind of policy says that it does not look at the step."""
    if isinstance(policy, Mixture):
        return is_stationary(policy.policy) and is_stationary(policy.behavior)
    if isinstance(policy, TabularPolicy):
        return policy.table.ndim == 2
    return isinstance(policy, Uniform | FromClassifier)
