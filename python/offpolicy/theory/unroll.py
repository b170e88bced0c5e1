"""An MDP unrolled into a DAG, whose states are (step, state), or into a tree, whose states are histories.

The value of a policy and the variance of every estimator stay the same, but a Cramér-Rao bound assumes less: on the
tree it does not assume that states are Markov, and on the DAG it does not assume that transitions are the same at every
step. Rewards keep their means and variances on the transitions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from offpolicy._util.scalars import whole
from offpolicy.errors.kinds.of_theory import too_many_states
from offpolicy.theory.arrays import Array
from offpolicy.theory.mdp import MDP
from offpolicy.theory.rewards import Rewards

Label: TypeAlias = tuple[int, ...]
#: An edge is (state, action, next state) of the new MDP and (step, state, action, next state) of the old one.
Edge: TypeAlias = tuple[tuple[int, int, int], tuple[int, int, int, int]]


@dataclass(frozen=True, eq=False)
class Unrolled:
    """The unrolled MDP with the labels of its states; its methods convert tables of the original MDP."""

    mdp: MDP
    states: list[Label]
    steps: Array
    originals: Array
    source: MDP

    def policy(self, policy: ArrayLike) -> Array:
        """Convert a policy of the original MDP to the unrolled one, (N, A)."""
        return self._carried(self.source.policy(policy, "policy"))

    def q_hat(self, q_hat: ArrayLike) -> Array:
        """Convert a Q̂ of the original MDP to the unrolled one, (N, A)."""
        return self._carried(self.source.q_hat(q_hat))

    def _carried(self, table: Array) -> Array:
        last = np.minimum(self.steps, self.source.horizon - 1)  # the entries of s_{H+1} are never used
        carried: Array = table[last, self.originals]
        return carried


def unroll_dag(mdp: MDP, max_states: int = 2000) -> Unrolled:
    """Unroll into a DAG of states (step, state) that some policy reaches, with those after the last step.

    >>> from offpolicy import theory
    >>> loop = theory.MDP([[[0.5, 0.5]], [[0.0, 1.0]]], rewards=[[1.0], [0.0]], initial=[1.0, 0.0], horizon=2)
    >>> dag = theory.unroll_dag(loop)
    >>> dag.states
    [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1)]
    >>> theory.value(dag.mdp, dag.policy([[1.0], [1.0]])), theory.value(loop, [[1.0], [1.0]])
    (1.5, 1.5)
    """
    return _unroll(mdp, "DAG", lambda s: (0, s), lambda label, _, s: (label[0] + 1, s), max_states)


def unroll_tree(mdp: MDP, max_states: int = 2000) -> Unrolled:
    """Unroll into a tree of histories (s_1, a_1, s_2, …, s_t) that have positive probability, up to s_{H+1}.

    >>> from offpolicy import theory
    >>> loop = theory.MDP([[[0.5, 0.5]], [[0.0, 1.0]]], rewards=[[1.0], [0.0]], initial=[1.0, 0.0], horizon=2)
    >>> theory.unroll_tree(loop).states
    [(0,), (0, 0, 0), (0, 0, 1), (0, 0, 0, 0, 0), (0, 0, 0, 0, 1), (0, 0, 1, 0, 1)]
    """
    return _unroll(mdp, "tree", lambda s: (s,), lambda label, a, s: (*label, a, s), max_states)


def _unroll(
    mdp: MDP, kind: str, first: Callable[[int], Label], extend: Callable[[Label, int, int], Label], max_states: int
) -> Unrolled:
    """Unroll one step at a time; the last entry of a label is the original state."""
    most = whole("max_states", max_states, 1)
    layer = [first(int(s)) for s in np.flatnonzero(mdp.initial > 0)]
    index = {label: i for i, label in enumerate(layer)}
    steps = [0] * len(layer)
    edges: list[Edge] = []
    for t in range(mdp.horizon):
        reached: list[Label] = []
        for label in layer:
            s = label[-1]
            if mdp.terminal[s]:
                continue
            for a, following in np.argwhere(mdp.transitions[t, s] > 0).tolist():
                new = extend(label, a, following)
                if new not in index:
                    index[new] = len(index)
                    reached.append(new)
                edges.append(((index[label], a, index[new]), (t, s, a, following)))
            if len(index) > most:
                raise too_many_states(kind=kind, limit=most, name=kind.lower())
        steps += [t + 1] * len(reached)
        layer = reached
    labels, originals = list(index), np.array([label[-1] for label in index])
    ended = mdp.terminal[originals] | (np.array(steps) == mdp.horizon)
    initial = np.where(np.array(steps) == 0, mdp.initial[originals], 0)
    return Unrolled(_assemble(mdp, initial, edges, np.flatnonzero(ended)), labels, np.array(steps), originals, mdp)


def _assemble(mdp: MDP, initial: Array, edges: list[Edge], ended: Array) -> MDP:
    shape = (len(initial), mdp.actions, len(initial))
    p, mean, variance = (np.zeros(shape, dtype=initial.dtype) for _ in range(3))
    for new, old in edges:
        p[new], mean[new], variance[new] = mdp.transitions[old], mdp.reward_mean[old], mdp.reward_variance[old]
    return MDP(p, Rewards(mean, variance), initial, mdp.horizon, mdp.discount, ended)
