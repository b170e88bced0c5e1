"""The behaviour policy, known or estimated from a log, as a policy that mixtures can use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from offpolicy.drivers.arguments import read_behavior
from offpolicy.models.behavior import BehaviorEstimate, estimate_of
from offpolicy.protocols import Floats, Policy, Setting, States, Step


def is_policy(behavior: Any) -> bool:
    """Return whether `behavior` is a policy itself, rather than a way to estimate it."""
    return callable(getattr(behavior, "probabilities", None))


def behavior_policy(behavior: Any, log: Any, domain: Setting, smoothing: float = 1.0) -> Policy:
    """Return the behaviour policy or its estimate from this log; `behavior` has the form that `LoggedDomain` takes.

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
    """The policy (N(s, a) + α) / Σ_b (N(s, b) + α) over legal actions b, which is uniform where nothing is known."""

    estimate: BehaviorEstimate
    domain: Setting
    smoothing: float

    def probabilities(self, states: States, step: Step) -> Floats:
        """Return the smoothed estimate."""
        legal = self.domain.legal(states)
        seen = self.estimate.seen(states, np.zeros(len(states), dtype=np.int64))
        weights = np.where(legal, seen + self.smoothing, 0.0)
        weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, legal.astype(float))
        pi: Floats = weights / weights.sum(axis=1, keepdims=True)
        return pi
