"""Cramér-Rao bounds on the variance of every unbiased off-policy estimator: Theorem 2 (tree) and Theorem 3 (DAG).

    Theorem 2: Σ_{t=1}^{H+1} E[ρ_{1:t-1}² Var_t(V(s_t))]
    Theorem 3: Σ_{t=1}^{H+1} E[(P1(s_{t-1}, a_{t-1}) / P0(s_{t-1}, a_{t-1}))² Var_t(V(s_t))]

The paper takes γ = 1 and puts all reward into s_{H+1}. With a reward at every step an outcome of (s_t, a_t) is a pair
(r_t, s_{t+1}). The parameters are the probabilities of outcomes; the derivative of v by one of them is
γ^{t-1} P1(s_t, a_t) (r_t + γ V(s_{t+1})), and the rest of the proof is the same. The sum becomes, with
σ²_t(s, a) = Var(r_t + γ V(s_{t+1}) | s_t = s, a_t = a),

    Var_{s~μ}(V(s)) + Σ_{t=1}^H γ^{2(t-1)} Σ_{s,a} W_t(s, a) σ²_t(s, a)

    tree: W_t(s, a) = E[ρ_{1:t}² 1{s_t = s, a_t = a}],    DAG: W_t(s, a) = P1(s_t = s, a_t = a)² / P0(s_t = s, a_t = a)

On a tree both are the same. By Jensen's inequality the DAG's bound is never above the tree's, and the tree's is the
variance of DR with Q̂ = Q. Neither assumes that transitions are the same at different steps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from offpolicy.errors.kinds.of_theory import not_a_tree
from offpolicy.theory.arrays import Array, Number, number, variance
from offpolicy.theory.mdp import MDP
from offpolicy.theory.outcome import outcome_variance
from offpolicy.theory.ratios import PolicyPair, occupancy, ratios
from offpolicy.theory.structure import why_no_dag, why_no_tree
from offpolicy.theory.values import bellman


def cramer_rao_tree(mdp: MDP, behavior: ArrayLike, target: ArrayLike, unroll: bool = False) -> Number:
    """Return the bound of Theorem 2: the lowest variance of unbiased estimators that treat states as histories.

    The bound is for one trajectory. An MDP that is not a tree raises an error; with `unroll` the bound is that of
    `unroll_tree(mdp)`, which is not built.

    >>> from offpolicy import theory
    >>> prize = theory.MDP(
    ...     [[[1.0], [1.0]]], theory.Rewards([[0.0, 1.0]], variance=[[0.0, 2.0]]), initial=[1.0], horizon=1
    ... )
    >>> theory.cramer_rao_tree(prize, [[0.5, 0.5]], [[0.0, 1.0]])
    4.0
    """
    _check("tree", None if unroll else why_no_tree(mdp))
    policies = ratios(mdp, behavior, target)
    with np.errstate(over="ignore", invalid="ignore"):
        return _bound(mdp, policies, _squared_ratios(mdp, policies))


def cramer_rao_dag(mdp: MDP, behavior: ArrayLike, target: ArrayLike, unroll: bool = False) -> Number:
    """Return the bound of Theorem 3: the lowest variance of unbiased estimators that know where paths meet.

    The bound is for one trajectory. An MDP in which a state recurs raises an error; with `unroll` the bound is that of
    `unroll_dag(mdp)`, which is not built.

    >>> from offpolicy import theory
    >>> loop = theory.MDP([[[0.5, 0.5]] * 2, [[0.5, 0.5]] * 2], [[1.0, 2.0], [0.0, 0.0]], [0.5, 0.5], horizon=3)
    >>> behavior, target = [[0.5, 0.5]] * 2, [[0.25, 0.75]] * 2
    >>> theory.cramer_rao_dag(loop, behavior, target, unroll=True)
    2.6796875
    >>> theory.cramer_rao_tree(loop, behavior, target, unroll=True)
    2.9189453125
    """
    _check("DAG", None if unroll else why_no_dag(mdp))
    policies = ratios(mdp, behavior, target)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        p0, p1 = occupancy(mdp, policies.pi0), occupancy(mdp, policies.pi1)
        return _bound(mdp, policies, p1**2 / np.where(p1 > 0, p0, 1))


def _check(kind: str, why: str | None) -> None:
    if why is not None:
        name = kind.lower()
        raise not_a_tree(kind=kind, why=why, name=name)


def _squared_ratios(mdp: MDP, policies: PolicyPair) -> Array:
    """Return E[ρ_{1:t}² 1{s_t = s, a_t = a}], (H, S, A): an occupancy weighted with squared ratios."""
    return occupancy(mdp, policies.pi0 * policies.rho**2)


def _bound(mdp: MDP, policies: PolicyPair, weights: Array) -> Number:
    q, v = bellman(mdp, policies.pi1)
    sigma2 = outcome_variance(mdp, q, v)
    steps = sum(mdp.discount ** (2 * t) * (weights[t] * sigma2[t]).sum() for t in range(mdp.horizon))
    return number(variance(mdp.initial, v[0]) + steps, mdp.exact)
