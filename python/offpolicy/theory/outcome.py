"""The variance of one step's outcome, σ²_t(s, a) = Var(r_t + γ V(s_{t+1}) | s_t = s, a_t = a).

If the reward and the next state are independent given (s_t, a_t), as Theorem 1 assumes, it is
Var(r_t) + γ² Var(V(s_{t+1})). A reward that depends on the next state adds their covariance:

    σ² = Var(r_t) + 2γ Cov(r_t, V(s_{t+1})) + γ² Var(V(s_{t+1}))

With m(s') and w(s') the mean and variance of r_t given s_{t+1} = s', the law of total variance gives all three at once,
without a difference of large numbers:

    σ² = Σ_{s'} P(s'|s, a) [w(s') + (m(s') + γ V(s') - Q(s, a))²]
"""

from __future__ import annotations

import numpy as np

from offpolicy.theory.arrays import Array
from offpolicy.theory.mdp import MDP


def outcome_variance(mdp: MDP, q: Array, v: Array) -> Array:
    """Return σ² as (H, S, A), given Q and V of a policy."""
    variance = np.zeros_like(q)
    for t in range(mdp.horizon):
        surprise = mdp.reward_mean[t] + mdp.discount * v[t + 1] - q[t][..., None]
        variance[t] = (mdp.transitions[t] * (mdp.reward_variance[t] + surprise**2)).sum(axis=-1)
    return variance
