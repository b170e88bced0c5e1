"""Policies as tables over cells: what a finite model and a fast look-up need of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from offpolicy.grid import Grid
from offpolicy.models.aggregation import Aggregation
from offpolicy.policies import FromClassifier, Mixture, TabularPolicy, Uniform
from offpolicy.protocols import Floats, Policy, States, Step, ValueModel


def exact_table(policy: Policy, aggregation: Aggregation, actions: int) -> Floats | None:
    """π(a|cell), (cells, actions) or (steps, cells, actions), if that is all the policy looks at; otherwise None."""
    if isinstance(policy, TabularPolicy) and policy.grid == aggregation and policy.table.shape[-1] == actions:
        return policy.table
    if isinstance(policy, Uniform) and policy.legal is None and policy.actions == actions:
        return np.full((aggregation.cells, actions), 1 / actions)
    if isinstance(policy, Mixture):
        ours = exact_table(policy.policy, aggregation, actions)
        theirs = exact_table(policy.behavior, aggregation, actions)
        if ours is not None and theirs is not None:
            return policy.mixed(ours, theirs)
    return None


def uneven_rows(policy: Policy, cells: NDArray[np.int64], steps: NDArray[Any], first_step: int) -> int:
    """Return how many rows come from a row of a table that was divided by its sum, for a policy of `exact_table`."""
    uneven, parts = np.zeros(len(cells), dtype=bool), [policy]
    while parts:
        part = parts.pop()
        if isinstance(part, Mixture):
            parts += [part.policy, part.behavior]
        elif isinstance(part, TabularPolicy) and part.uneven.any():
            uneven |= part.uneven[cells] if part.table.ndim == 2 else part.uneven[steps - first_step, cells]
    return int(uneven.sum())


def looks_closer(policy: Policy, aggregation: Aggregation, actions: int) -> bool:
    """True if the policy may tell two states of a cell apart: then its values at a state need π at that state.

    Cells of a grid with scale 1 are taken to have one state each.
    """
    alone = isinstance(aggregation, Grid) and all(scale == 1 for scale in aggregation.scale)
    return not alone and exact_table(policy, aggregation, actions) is None


def expected_q(values: ValueModel, policy: Policy, states: States, step: Step) -> Floats:
    """Σ_a π(a|s) Q̂(s, a), with π at the states themselves: doubly robust estimates are unbiased only with this V̂."""
    pi = policy.probabilities(states, step)
    q = [values.q_hat(states, np.full(len(states), a), step) for a in range(pi.shape[1])]
    expected: Floats = np.einsum("na,an->n", pi, np.stack(q))
    return expected


def table_at(policy: Policy, states: States, horizon: int) -> Floats:
    """π(a|s) at given states: (n, actions), or (horizon, n, actions) where it depends on the step."""
    first = policy.probabilities(states, 0)
    if is_stationary(policy):
        return first
    tables = np.stack([first, *(policy.probabilities(states, t) for t in range(1, horizon))])
    return first if (tables == first).all() else tables


def is_stationary(policy: Policy) -> bool:
    """True where the kind of policy says that it does not look at the step."""
    if isinstance(policy, Mixture):
        return is_stationary(policy.policy) and is_stationary(policy.behavior)
    if isinstance(policy, TabularPolicy):
        return policy.table.ndim == 2
    return isinstance(policy, Uniform | FromClassifier)
