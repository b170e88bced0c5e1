"""The bias of DR-v2 with P̂/P taken as 1, exactly and by Proposition 1.

V̂ is the value of the target policy in the model (P̂, R̂). The estimator telescopes:

    DR-v2 = V̂_1(s_1) + Σ_t γ^{t-1} ρ_{1:t} (r_t - R̂(s_t, a_t))

By V̂_1(s_1) = Σ_t γ^{t-1} E_{π1}[V̂_t(s_t) - γ V̂_{t+1}(s_{t+1})] and V̂_t = Σ_a π1 (R̂ + γ Σ_{s'} P̂ V̂_{t+1}), its bias is

    E[DR-v2] - v = Σ_{t=1}^H γ^t E_{π1}[Σ_{s'} (P̂ - P)(s'|s_t, a_t) V̂_{t+1}(s')]

The appendix of the paper has the opposite sign, which does not affect its bound. By Proposition 1, with
ε = max_{s,a} ‖P̂(.|s, a) - P(.|s, a)‖₁ and V_max = max |V̂|, the bias is at most ε V_max Σ_{t=1}^H γ^t in size.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from offpolicy.theory.arrays import Number, number
from offpolicy.theory.mdp import MDP
from offpolicy.theory.ratios import occupancy
from offpolicy.theory.rewards import Rewards
from offpolicy.theory.values import bellman


def dr_v2_bias(mdp: MDP, target: ArrayLike, p_hat: ArrayLike, r_hat: ArrayLike | Rewards) -> Number:
    """Return E[`dr-v2`] - v for a model with these transitions and rewards, for any behaviour policy with support.

    >>> from offpolicy import theory
    >>> mdp = theory.MDP([[[0.5, 0.5]], [[0.0, 1.0]]], rewards=[[1.0], [0.0]], initial=[1.0, 0.0], horizon=2)
    >>> theory.dr_v2_bias(mdp, [[1.0], [1.0]], p_hat=[[[0.75, 0.25]], [[0.0, 1.0]]], r_hat=[[3.0], [0.0]])
    0.75
    """
    model, pi = mdp.model(p_hat, r_hat), mdp.policy(target, "target")
    _, v_hat = bellman(model, pi)
    taken = occupancy(mdp, pi)
    bias = mdp.discount * 0
    for t in range(mdp.horizon):
        error = (model.transitions[t] - mdp.transitions[t]) @ v_hat[t + 1]
        bias += mdp.discount ** (t + 1) * (taken[t] * error).sum()
    return number(bias, mdp.exact)


def dr_v2_bias_bound(mdp: MDP, target: ArrayLike, p_hat: ArrayLike, r_hat: ArrayLike | Rewards) -> Number:
    """Return the bound ε V_max Σγ^t of Proposition 1 on |`dr_v2_bias`|.

    >>> from offpolicy import theory
    >>> mdp = theory.MDP([[[0.5, 0.5]], [[0.0, 1.0]]], rewards=[[1.0], [0.0]], initial=[1.0, 0.0], horizon=2)
    >>> theory.dr_v2_bias_bound(mdp, [[1.0], [1.0]], p_hat=[[[0.75, 0.25]], [[0.0, 1.0]]], r_hat=[[3.0], [0.0]])
    5.25
    """
    model = mdp.model(p_hat, r_hat)
    _, v_hat = bellman(model, mdp.policy(target, "target"))
    epsilon = max(np.abs(model.transitions[t] - mdp.transitions[t]).sum(axis=-1).max() for t in range(mdp.horizon))
    steps = sum(mdp.discount**t for t in range(1, mdp.horizon + 1))
    return number(epsilon * np.abs(v_hat).max() * steps, mdp.exact)
