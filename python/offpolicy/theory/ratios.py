"""The ratios ρ_t(s, a) = π1_t(a|s) / π0_t(a|s), and the support that off-policy evaluation needs.

If the target policy can reach (t, s) and takes an action there that the behaviour policy never takes, no log tells what
follows: importance sampling and DR are biased, and no estimator is unbiased for every MDP. Such a pair of policies
raises an error. In states that the target policy cannot reach, ρ_{1:t} is already 0 and the action does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from offpolicy.errors.kinds.of_theory import no_support
from offpolicy.theory.arrays import Array
from offpolicy.theory.mdp import MDP


@dataclass(frozen=True, eq=False)
class PolicyPair:
    """The policies π0 and π1 and their ratios ρ, all (H, S, A)."""

    pi0: Array
    pi1: Array
    rho: Array


def ratios(mdp: MDP, behavior: ArrayLike, target: ArrayLike) -> PolicyPair:
    """Return π0, π1 and ρ; raise an error that names the first step, state and action without support."""
    pi0, pi1 = mdp.policy(behavior, "behavior"), mdp.policy(target, "target")
    unseen = (pi0 == 0) & (pi1 > 0)
    here = mdp.initial > 0
    for t in range(mdp.horizon):
        for s, a in np.argwhere(unseen[t] & here[:, None])[:1]:
            raise no_support(step=t, state=s, action=a, probability=f"{float(pi1[t, s, a]):.6g}")
        here = ((pi1[t] > 0) & here[:, None]).ravel() @ (mdp.transitions[t] > 0).reshape(-1, mdp.states)
    return PolicyPair(pi0, pi1, pi1 / np.where(pi0 > 0, pi0, 1))


def occupancy(mdp: MDP, pi: Array) -> Array:
    """Return P(s_t = s, a_t = a) under a policy, (H, S, A)."""
    found = np.zeros(pi.shape, dtype=pi.dtype)
    here = mdp.initial
    for t in range(mdp.horizon):
        found[t] = here[:, None] * pi[t]
        here = found[t].ravel() @ mdp.transitions[t].reshape(-1, mdp.states)
    return found
