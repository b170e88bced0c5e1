"""Theorem 1: the variance of the doubly robust estimator, for any Q̂.

    DR_t = V̂(s_t) + ρ_t (r_t + γ DR_{t+1} - Q̂(s_t, a_t)),    V̂(s) = Σ_a π1(a|s) Q̂(s, a),    DR_{H+1} = 0

The paper's recursion conditions on (s_1, a_1, …, s_{t-1}, a_{t-1}), with Δ = Q̂ - Q:

    Var_t[DR_t] = Var_t[V(s_t)] + E_t[Var_t[ρ_t Δ(s_t, a_t) | s_t]]
                  + E_t[ρ_t² Var_{t+1}[r_t]] + E_t[γ² ρ_t² Var_{t+1}[DR_{t+1}]]

With Markov states it becomes a recursion over u_t(s) = Var(DR_t | s_t = s). By E[DR_{t+1} | s_{t+1}] = V(s_{t+1}),

    Var(r_t + γ DR_{t+1} | s, a) = σ²_t(s, a) + γ² Σ_{s'} P(s'|s, a) u_{t+1}(s')
    u_t(s) = Var_{a~π0}(ρ_t Δ_t(s, a)) + Σ_a π0(a|s) ρ_t² [σ²_t(s, a) + γ² Σ_{s'} P(s'|s, a) u_{t+1}(s')]
    Var(DR) = Var_{s~μ}(V_1(s)) + Σ_s μ(s) u_1(s)

where σ² = Var(r_t + γ V(s_{t+1}) | s, a). If a reward depends on s_{t+1}, σ² has a covariance that the theorem, as
printed, leaves out; it adds 2γ E_t[ρ_t² Cov(r_t, V(s_{t+1}) | s_t, a_t)] (`outcome.py`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from offpolicy._util import scalars
from offpolicy.theory.arrays import Array, Number, as_array, number, variance
from offpolicy.theory.mdp import MDP
from offpolicy.theory.outcome import outcome_variance
from offpolicy.theory.ratios import PolicyPair, ratios
from offpolicy.theory.values import bellman


def dr_variance(mdp: MDP, behavior: ArrayLike, target: ArrayLike, q_hat: ArrayLike) -> Number:
    """Return the variance of `dr` for one trajectory; an estimate from n trajectories has 1/n of it.

    Policies and Q̂ are (S, A) or (H, S, A).

    >>> from offpolicy import theory
    >>> coin = theory.MDP([[[1.0], [1.0]]], rewards=[[0.0, 1.0]], initial=[1.0], horizon=2)
    >>> behavior, target = [[0.5, 0.5]], [[0.25, 0.75]]
    >>> theory.dr_variance(coin, behavior, target, q_hat=[[0.0, 1.0]])
    0.140625
    >>> theory.dr_variance(coin, behavior, target, q_hat=theory.q_values(coin, target))
    0.0
    """
    return variance_of_dr(mdp, ratios(mdp, behavior, target), mdp.q_hat(q_hat))


def step_is_variance(mdp: MDP, behavior: ArrayLike, target: ArrayLike) -> Number:
    """Return the variance of `step-is` for one trajectory, which is that of DR with Q̂ = 0.

    >>> from offpolicy import theory
    >>> coin = theory.MDP([[[1.0], [1.0]]], rewards=[[0.0, 1.0]], initial=[1.0], horizon=1)
    >>> theory.step_is_variance(coin, [[0.5, 0.5]], [[0.25, 0.75]])
    0.5625
    """
    policies = ratios(mdp, behavior, target)
    return variance_of_dr(mdp, policies, np.zeros_like(policies.rho))


def dr_bsl_variance(mdp: MDP, behavior: ArrayLike, target: ArrayLike, baseline: Number) -> Number:
    """Return the variance of `dr-bsl` for one trajectory: DR with Q̂_t = V̂_t = c Σ_{k≤H-t} γ^k and baseline c.

    >>> from offpolicy import theory
    >>> coin = theory.MDP([[[1.0], [1.0]]], rewards=[[0.0, 1.0]], initial=[1.0], horizon=2)
    >>> theory.dr_bsl_variance(coin, [[0.5, 0.5]], [[0.25, 0.75]], baseline=0.75)
    0.31640625
    >>> theory.dr_bsl_variance(coin, [[0.5, 0.5]], [[0.25, 0.75]], baseline=0.0)  # that of step-is
    1.96875
    """
    scalars.number("baseline", baseline)
    policies, c = ratios(mdp, behavior, target), as_array(baseline, mdp.exact, "baseline")
    annuities = [sum(mdp.discount**k for k in range(mdp.horizon - t)) for t in range(mdp.horizon)]
    guess = c * np.array(annuities, dtype=policies.rho.dtype)
    return variance_of_dr(mdp, policies, np.broadcast_to(guess[:, None, None], policies.rho.shape))


def variance_of_dr(mdp: MDP, policies: PolicyPair, q_hat: Array) -> Number:
    """Run the recursion from the last step to the first."""
    pi0, rho = policies.pi0, policies.rho
    q, v = bellman(mdp, policies.pi1)
    sigma2 = outcome_variance(mdp, q, v)
    u = np.zeros_like(mdp.initial)
    with np.errstate(over="ignore", invalid="ignore"):  # `number` raises an error for an infinite result
        for t in reversed(range(mdp.horizon)):
            error = rho[t] * (q_hat[t] - q[t])
            action = (error - (pi0[t] * error).sum(axis=-1, keepdims=True)) ** 2
            following = sigma2[t] + mdp.discount**2 * (mdp.transitions[t] @ u)
            u = (pi0[t] * (action + rho[t] ** 2 * following)).sum(axis=-1)
        return number(variance(mdp.initial, v[0]) + mdp.initial @ u, mdp.exact)
