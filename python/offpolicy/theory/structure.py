"""The two structures of an MDP for which the paper gives Cramér-Rao bounds.

- DAG: under every policy a state occurs at one step only; different paths may meet in it.
- Tree: a DAG in which each state is reached in one way only, so that a state determines its history.

Terminal states and s_{H+1} may be shared in both, because no decision follows them and they add no parameters.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from offpolicy.theory.arrays import Array
from offpolicy.theory.mdp import MDP


def structure_of(mdp: MDP) -> Literal["tree", "dag"] | None:
    """Return the structure of an MDP, or None if a state recurs.

    >>> from offpolicy import theory
    >>> line = [[[0.0, 1.0]], [[0.0, 1.0]]]
    >>> theory.structure_of(theory.MDP(line, rewards=[[1.0], [1.0]], initial=[1.0, 0.0], horizon=2))
    'tree'
    >>> theory.structure_of(theory.MDP(line, rewards=[[1.0], [1.0]], initial=[1.0, 0.0], horizon=3)) is None
    True
    """
    if why_no_dag(mdp) is not None:
        return None
    return "dag" if why_no_tree(mdp) is not None else "tree"


def why_no_dag(mdp: MDP) -> str | None:
    """Describe the first state that occurs at several steps; return None if there is none."""
    occurs = reachable(mdp) & ~mdp.terminal
    for s in np.flatnonzero(occurs.sum(axis=0) > 1)[:1]:
        first, second = np.flatnonzero(occurs[:, s])[:2]
        return f"state {s} occurs at steps {first} and {second}"
    return None


def why_no_tree(mdp: MDP) -> str | None:
    """Describe the first state that recurs or is reached in several ways; return None if there is none."""
    recurring = why_no_dag(mdp)
    if recurring is not None:
        return recurring
    occurs = reachable(mdp)
    for t in range(mdp.horizon - 1):
        leads = (mdp.transitions[t] > 0) & occurs[t][:, None, None] & ~mdp.terminal
        for shared in np.flatnonzero(leads.sum(axis=(0, 1)) > 1)[:1]:
            (s, a), (other_s, other_a) = np.argwhere(leads[:, :, shared])[:2]
            return f"state {shared} follows on state {s}, action {a} and on state {other_s}, action {other_a}"
    return None


def reachable(mdp: MDP) -> Array:
    """Return whether some policy can be in state s at step t, (H, S)."""
    found = np.zeros((mdp.horizon, mdp.states), dtype=bool)
    found[0] = mdp.initial > 0
    for t in range(mdp.horizon - 1):
        found[t + 1] = (mdp.transitions[t][found[t]] > 0).any(axis=(0, 1))
    return found
