"""The bias from actions of the target policy that the behaviour policy never takes.

Trajectories with such an action are missing from the log, and the others keep their weight, so that

    E[ρ_{1:t}] = 1 - P_{π1}(an unsupported action by step t)
    E[step-is] - v = -Σ_t γ^{t-1} E_{π1}[r_t 1{an unsupported action by step t}]

The bias is at most Σ_t γ^{t-1} (1 - E[ρ_{1:t}]) max |r| in size.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from offpolicy.theory.arrays import Array, Number, number
from offpolicy.theory.mdp import MDP
from offpolicy.theory.ratios import occupancy


def missing_support(mdp: MDP, behavior: ArrayLike, target: ArrayLike) -> Array:
    """Return 1 - E[ρ_{1:t}], (H,), the probability that the target takes an unsupported action by step t.

    >>> from offpolicy import theory
    >>> coin = theory.MDP([[[1.0], [1.0]]], rewards=[[2.0, 1.0]], initial=[1.0], horizon=3)
    >>> theory.missing_support(coin, behavior=[[0.0, 1.0]], target=[[0.5, 0.5]])
    array([0.5  , 0.75 , 0.875])
    """
    missing: Array = _lost(mdp, behavior, target).sum(axis=(1, 2))
    return missing


def step_is_bias(mdp: MDP, behavior: ArrayLike, target: ArrayLike) -> Number:
    """Return the bias E[`step-is`] - v, which is 0 with full support.

    >>> from offpolicy import theory
    >>> coin = theory.MDP([[[1.0], [1.0]]], rewards=[[2.0, 1.0]], initial=[1.0], horizon=1)
    >>> theory.step_is_bias(coin, behavior=[[0.0, 1.0]], target=[[0.5, 0.5]])
    -1.0
    """
    lost = _lost(mdp, behavior, target)
    bias = mdp.discount * 0
    for t in range(mdp.horizon):
        reward = (mdp.transitions[t] * mdp.reward_mean[t]).sum(axis=-1)
        bias -= mdp.discount**t * (lost[t] * reward).sum()
    return number(bias, mdp.exact)


def step_is_bias_bound(mdp: MDP, behavior: ArrayLike, target: ArrayLike) -> Number:
    """Return Σ_t γ^{t-1} (1 - E[ρ_{1:t}]) max |r|, where max |r| is the largest mean reward of a transition in size.

    >>> from offpolicy import theory
    >>> coin = theory.MDP([[[1.0], [1.0]]], rewards=[[2.0, 1.0]], initial=[1.0], horizon=3)
    >>> theory.step_is_bias_bound(coin, behavior=[[0.0, 1.0]], target=[[0.5, 0.5]])
    4.25
    """
    lost = missing_support(mdp, behavior, target)
    largest = max(np.abs(mdp.reward_mean[t]).max() for t in range(mdp.horizon))
    return number(sum(mdp.discount**t * lost[t] for t in range(mdp.horizon)) * largest, mdp.exact)


def _lost(mdp: MDP, behavior: ArrayLike, target: ArrayLike) -> Array:
    """Return P_{π1}(s_t = s, a_t = a, an unsupported action by step t), (H, S, A)."""
    pi0, pi1 = mdp.policy(behavior, "behavior"), mdp.policy(target, "target")
    return occupancy(mdp, pi1) - occupancy(mdp, pi1 * (pi0 > 0))
