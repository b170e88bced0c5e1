"""Policies as tables over cells, the form that a finite model needs."""

from __future__ import annotations

import numpy as np

from offpolicy.protocols import Aggregation, Floats, Policy, PolicyTable, States, Step, ValueModel


def tabulated(policy: Policy, aggregation: Aggregation, actions: int) -> PolicyTable | None:
    """Return π(a|cell) of a `TabulatedPolicy` that depends on the cell only, and None for other policies."""
    tells = getattr(policy, "tabulated", None)
    found: PolicyTable | None = tells(aggregation, actions) if callable(tells) else None
    return found


def exact_table(policy: Policy, aggregation: Aggregation, actions: int) -> Floats | None:
    """Return the probabilities of `tabulated`, (cells, actions) or (steps, cells, actions), or None."""
    found = tabulated(policy, aggregation, actions)
    return None if found is None else found.probabilities


def looks_closer(policy: Policy, aggregation: Aggregation, actions: int) -> bool:
    """Return whether the policy may differ between states of a cell, so that its values need π at each state.

    Cells of a grid with scale 1 are assumed to have one state each.
    """
    alone: bool = getattr(aggregation, "has_unit_cells", False)
    return not alone and tabulated(policy, aggregation, actions) is None


def expected_q(values: ValueModel, policy: Policy, states: States, step: Step) -> Floats:
    """Return Σ_a π(a|s) Q̂(s, a) with π at the states themselves; DR is unbiased only with this V̂."""
    pi = policy.probabilities(states, step)
    q = [values.q_hat(states, np.full(len(states), a), step) for a in range(pi.shape[1])]
    expected: Floats = np.einsum("na,an->n", pi, np.stack(q))
    return expected


def table_at(policy: Policy, states: States, horizon: int) -> Floats:
    """Return π(a|s) at given states, (n, actions), or (horizon, n, actions) if it depends on the step."""
    first = policy.probabilities(states, 0)
    if getattr(policy, "is_stationary", False):
        return first
    tables = np.stack([first, *(policy.probabilities(states, t) for t in range(1, horizon))])
    return first if (tables == first).all() else tables
