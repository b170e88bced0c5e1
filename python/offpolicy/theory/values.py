"""The exact value of a policy, by the Bellman equations (2) and (3).

    Q_t(s, a) = E[r_t + γ V_{t+1}(s_{t+1}) | s_t = s, a_t = a],    V_t(s) = Σ_a π_t(a|s) Q_t(s, a),    V_{H+1} = 0

The value of the policy is v = Σ_s μ(s) V_1(s).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from offpolicy.theory.arrays import Array, Number, number
from offpolicy.theory.mdp import MDP


def value(mdp: MDP, policy: ArrayLike) -> Number:
    """Return v, the expected discounted return of a policy given as (S, A) or (H, S, A).

    >>> from offpolicy import theory
    >>> coin = theory.MDP([[[1.0], [1.0]]], rewards=[[0.0, 1.0]], initial=[1.0], horizon=2, discount=0.5)
    >>> theory.value(coin, [[0.2, 0.8]])
    1.2
    """
    _, v = bellman(mdp, mdp.policy(policy, "policy"))
    return number(mdp.initial @ v[0], mdp.exact)


def q_values(mdp: MDP, policy: ArrayLike) -> Array:
    """Return Q of a policy as (H, S, A), the best Q̂ for `dr_variance`.

    >>> from offpolicy import theory
    >>> coin = theory.MDP([[[1.0], [1.0]]], rewards=[[0.0, 1.0]], initial=[1.0], horizon=2)
    >>> theory.q_values(coin, [[0.5, 0.5]])
    array([[[0.5, 1.5]],
           [[0. , 1. ]]])
    """
    return bellman(mdp, mdp.policy(policy, "policy"))[0]


def bellman(mdp: MDP, pi: Array) -> tuple[Array, Array]:
    """Return Q as (H, S, A) and V as (H + 1, S) of a policy given as (H, S, A); the last V is 0."""
    q = np.zeros(pi.shape, dtype=pi.dtype)
    v = np.zeros((mdp.horizon + 1, mdp.states), dtype=pi.dtype)
    for t in reversed(range(mdp.horizon)):
        outcome = mdp.reward_mean[t] + mdp.discount * v[t + 1]
        q[t] = (mdp.transitions[t] * outcome).sum(axis=-1)
        v[t] = (pi[t] * q[t]).sum(axis=-1)
    return q, v
