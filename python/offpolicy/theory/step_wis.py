"""The asymptotic variance of step-wise weighted importance sampling.

    step-WIS = Σ_t γ^{t-1} A_t / w_t,    A_t = mean of ρ_{1:t} r_t,    w_t = mean of ρ_{1:t}, ended episodes included

E[w_t] = 1 and E[A_t] = v_t = E_{π1}[r_t], so that the delta method gives the influence of a trajectory as

    ψ = Σ_t γ^{t-1} ρ_{1:t} (r_t - v_t)

With q_t = Σ_{k≥t} γ^{k-t} v_k, that is v_t = q_t - γ q_{t+1}, the sum telescopes to DR with the baseline q_t, which
depends on neither state nor action:

    v + ψ = Σ_t γ^{t-1} [ρ_{1:t-1} q_t + ρ_{1:t} (r_t - q_t)] = DR with Q̂_t = V̂_t = q_t

An ended episode has ρ = 1 and r = 0, and its terms q_t - q_t vanish. So Theorem 1 gives the variance of ψ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from offpolicy.theory.arrays import Array, Number
from offpolicy.theory.dr import variance_of_dr
from offpolicy.theory.mdp import MDP
from offpolicy.theory.ratios import occupancy, ratios


def step_wis_variance(mdp: MDP, behavior: ArrayLike, target: ArrayLike) -> Number:
    """Return the limit of n · Var(step-wis) for n trajectories, the asymptotic variance for one trajectory.

    >>> from offpolicy import theory
    >>> always_1 = theory.MDP([[[1.0], [1.0]]], rewards=[[1.0, 1.0]], initial=[1.0], horizon=3)
    >>> theory.step_wis_variance(always_1, [[0.5, 0.5]], [[0.25, 0.75]])
    0.0
    >>> theory.step_is_variance(always_1, [[0.5, 0.5]], [[0.25, 0.75]])
    3.890625
    """
    policies = ratios(mdp, behavior, target)
    q = baseline(mdp, policies.pi1, (mdp.transitions * mdp.reward_mean).sum(axis=-1))
    return variance_of_dr(mdp, policies, np.broadcast_to(q[:, None, None], policies.rho.shape))


def baseline(mdp: MDP, pi1: Array, mean: Array) -> Array:
    """Return q_t, (H,), for rewards whose means given step, state and action are `mean`, (H, S, A)."""
    q = np.zeros(mdp.horizon, dtype=pi1.dtype)
    taken = occupancy(mdp, pi1)
    following = mdp.discount * 0
    for t in reversed(range(mdp.horizon)):
        following = (taken[t] * mean[t]).sum() + mdp.discount * following
        q[t] = following
    return q
