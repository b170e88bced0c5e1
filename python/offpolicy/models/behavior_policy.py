"""The behaviour policy as a policy: the one that is known, or an estimate from a log, for mixtures with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from offpolicy.drivers.arguments import read_behavior
from offpolicy.models.behavior import BehaviorEstimate, estimate_of
from offpolicy.protocols import Floats, Policy, Setting, States, Step


def is_policy(behavior: Any) -> bool:
    """Return True for a policy itself, and not for a way to estimate it."""
    return callable(getattr(behavior, "probabilities", None))


def behavior_policy(behavior: Any, log: Any, domain: Setting, smoothing: float = 1.0) -> Policy:
    """Return the policy, or its estimate from this log; `behavior` is as `LoggedDomain` takes it.

    >>> import offpolicy as op
    >>> from offpolicy.models.behavior_policy import behavior_policy
    >>> from offpolicy.testing import Walk
    >>> walk = Walk()
    >>> log = walk.simulate(walk.behavior, n=500, seed=0)
    >>> behavior_policy("counts", log, walk).probabilities(log[["place"]].to_numpy()[:1], 0).round(2)
    array([[0.33, 0.33, 0.34]])
    """
    if is_policy(behavior):
        known: Policy = behavior
        return known
    how = read_behavior(behavior, smoothing) or {}
    added = how.pop("smoothing")
    estimate, _ = estimate_of(log, domain, lambda ids: np.zeros(len(ids), dtype=np.int64), 1, **how)
    return EstimatedBehavior(estimate, domain, added)


@dataclass(frozen=True, eq=False)
class EstimatedBehavior:
    """(N(s, a) + α) / Σ_b (N(s, b) + α) over the legal actions b; equal where nothing is known."""

    estimate: BehaviorEstimate
    domain: Setting
    smoothing: float

    def probabilities(self, states: States, step: Step) -> Floats:
        """What was seen, smoothed."""
        legal = self.domain.legal(states)
        seen = self.estimate.seen(states, np.zeros(len(states), dtype=np.int64))
        weights = np.where(legal, seen + self.smoothing, 0.0)
        weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, legal.astype(float))
        pi: Floats = weights / weights.sum(axis=1, keepdims=True)
        return pi
