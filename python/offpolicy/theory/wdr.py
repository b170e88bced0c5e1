"""The asymptotic variance of weighted doubly robust.

    WDR = Σ_t γ^{t-1} [A_t / w_t + B_t / w_{t-1}],    w_t = mean of ρ_{1:t}, ended episodes included
    A_t = mean of ρ_{1:t} (r_t - Q̂_t),    B_t = mean of ρ_{1:t-1} V̂_t,    r = Q̂ = V̂ = 0 after the end

E[w_t] = 1, E[A_t] = α_t = E_{π1}[r_t - Q̂_t] and E[B_t] = β_t = E_{π1}[V̂_t], so that the delta method gives the
influence of a trajectory as

    ψ = Σ_t γ^{t-1} [ρ_{1:t} (r_t - Q̂_t - α_t) + ρ_{1:t-1} (V̂_t - β_t)]

Let q_t = α_t + γ β_{t+1} + γ q_{t+1}, with q = β = 0 after H. In Σ_t γ^{t-1} (ρ_{1:t-1} - ρ_{1:t}) q_t the factor of
ρ_{1:t} is γ^t q_{t+1} - γ^{t-1} q_t = -γ^{t-1} α_t - γ^t β_{t+1}, as in ψ; and that of ρ_{1:0} = 1 is q_1 = v - β_1. So

    v + ψ = Σ_t γ^{t-1} [ρ_{1:t-1} (V̂_t + q_t) + ρ_{1:t} (r_t - Q̂_t - q_t)] = DR with Q̂_t + q_t and V̂_t + q_t

where q_t depends on neither state nor action and continues after the end. An ended episode has ρ = 1 there, and its
terms q_t - q_t vanish. So Theorem 1 gives the variance of ψ. With δ_t = r_t + γ V̂_{t+1} - Q̂_t,

    q_t = Σ_{k≥t} γ^{k-t} E_{π1}[δ_k]

For Q̂ = 0 this is the q_t of `step-wis`. For the true Q it is 0, so that `wdr` has the variance of `dr`.

Thomas & Brunskill, "Data-efficient off-policy policy evaluation for reinforcement learning" (ICML 2016).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from offpolicy.theory.arrays import Number
from offpolicy.theory.dr import variance_of_dr
from offpolicy.theory.mdp import MDP
from offpolicy.theory.ratios import ratios
from offpolicy.theory.step_wis import baseline


def wdr_variance(mdp: MDP, behavior: ArrayLike, target: ArrayLike, q_hat: ArrayLike) -> Number:
    """Return the limit of n · Var(wdr) for n trajectories, the asymptotic variance for one trajectory.

    >>> from offpolicy import theory
    >>> coin = theory.MDP([[[1.0], [1.0]]], rewards=[[0.0, 1.0]], initial=[1.0], horizon=2)
    >>> behavior, target = [[0.5, 0.5]], [[0.25, 0.75]]
    >>> theory.wdr_variance(coin, behavior, target, q_hat=[[1.0, 2.0]])  # true but for a constant of each step
    0.0
    >>> theory.dr_variance(coin, behavior, target, q_hat=[[1.0, 2.0]])
    0.328125
    """
    policies, model = ratios(mdp, behavior, target), mdp.q_hat(q_hat)
    v_hat = np.zeros((mdp.horizon + 1, mdp.states), dtype=model.dtype)
    v_hat[:-1] = (policies.pi1 * model).sum(axis=-1)
    delta = (mdp.transitions * (mdp.reward_mean + mdp.discount * v_hat[1:, None, None])).sum(axis=-1) - model
    q = baseline(mdp, policies.pi1, delta)
    return variance_of_dr(mdp, policies, model + q[:, None, None])
