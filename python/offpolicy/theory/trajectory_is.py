"""The variances of trajectory-wise importance sampling, (4) and (6), with G = Σ_t γ^{t-1} r_t and c = ρ_{1:H}.

    is:  Var(c G) = E[c² G²] - v²
    wis: the limit of n · Var is that of its influence function, Var(c (G - v)) = E[c² (G - v)²]

Both need moments of G - V weighted by c². Let c_t = ρ_{t:H}, G_t = Σ_{k≥t} γ^{k-t} r_k, and given s_t = s

    α_t = E[c_t²] - 1,    β_t = E[c_t² (G_t - V_t(s))],    κ_t = E[c_t² (G_t - V_t(s))²]

G_t - V_t(s) = d + γ (G_{t+1} - V_{t+1}(s')) with the surprise d = r_t + γ V_{t+1}(s') - V_t(s). All three are 0 after
the last step, and

    α_t = Σ_a π0 (ρ - 1)² + Σ_a π0 ρ² E[α_{t+1}]
    β_t = Σ_a π0 ρ² E[d (1 + α_{t+1}) + γ β_{t+1}]
    κ_t = Σ_a π0 ρ² E[d² (1 + α_{t+1}) + 2γ d β_{t+1} + γ² κ_{t+1}]

where E is over (r_t, s') given (s, a).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from offpolicy.theory.arrays import Array, Number, number, variance
from offpolicy.theory.mdp import MDP
from offpolicy.theory.ratios import PolicyPair, ratios
from offpolicy.theory.values import bellman


def is_variance(mdp: MDP, behavior: ArrayLike, target: ArrayLike) -> Number:
    """Return the variance of `is` for one trajectory.

    >>> from offpolicy import theory
    >>> coin = theory.MDP([[[1.0], [1.0]]], rewards=[[0.0, 1.0]], initial=[1.0], horizon=3)
    >>> theory.is_variance(coin, [[0.5, 0.5]], [[0.25, 0.75]])
    9.703125
    >>> theory.step_is_variance(coin, [[0.5, 0.5]], [[0.25, 0.75]])
    4.7109375
    """
    with np.errstate(over="ignore", invalid="ignore"):
        v, alpha, beta, kappa = weighted_moments(mdp, ratios(mdp, behavior, target))
        spread = variance(mdp.initial, v) + mdp.initial @ (kappa + 2 * v * beta + v**2 * alpha)
    return number(spread, mdp.exact)


def wis_variance(mdp: MDP, behavior: ArrayLike, target: ArrayLike) -> Number:
    """Return the limit of n · Var(wis) for n trajectories, the asymptotic variance for one trajectory.

    >>> from offpolicy import theory
    >>> always_1 = theory.MDP([[[1.0], [1.0]]], rewards=[[1.0, 1.0]], initial=[1.0], horizon=3)
    >>> theory.wis_variance(always_1, [[0.5, 0.5]], [[0.25, 0.75]])
    0.0
    """
    with np.errstate(over="ignore", invalid="ignore"):
        v, alpha, beta, kappa = weighted_moments(mdp, ratios(mdp, behavior, target))
        centred = v - mdp.initial @ v
        spread = mdp.initial @ (kappa + 2 * centred * beta + centred**2 * (1 + alpha))
    return number(spread, mdp.exact)


def weighted_moments(mdp: MDP, policies: PolicyPair) -> tuple[Array, Array, Array, Array]:
    """Return V, α, β and κ of the first step, each (S,)."""
    gamma, rho = mdp.discount, policies.rho
    _, v = bellman(mdp, policies.pi1)
    alpha, beta, kappa = (np.zeros_like(mdp.initial) for _ in range(3))
    for t in reversed(range(mdp.horizon)):
        p, mean, spread = mdp.transitions[t], mdp.reward_mean[t], mdp.reward_variance[t]
        taken = policies.pi0[t] * rho[t] ** 2
        d = mean + gamma * v[t + 1] - v[t][:, None, None]
        d2 = d**2 + spread
        kappa = (taken * (p * (d2 * (1 + alpha) + 2 * gamma * d * beta + gamma**2 * kappa)).sum(axis=-1)).sum(axis=-1)
        beta = (taken * (p * (d * (1 + alpha) + gamma * beta)).sum(axis=-1)).sum(axis=-1)
        alpha = (policies.pi0[t] * (rho[t] - 1) ** 2 + taken * (p @ alpha)).sum(axis=-1)
    return v[0], alpha, beta, kappa
