"""Policies as tables over cells: what a finite model needs of them."""

from __future__ import annotations

import numpy as np

from offpolicy.protocols import Aggregation, Floats, Policy, PolicyTable, States, Step, ValueModel


def tabulated(policy: Policy, aggregation: Aggregation, actions: int) -> PolicyTable | None:
    """Return π(a|cell) if that is all the policy looks at, and it says so (see `TabulatedPolicy`); otherwise None."""
    tells = getattr(policy, "tabulated", None)
    found: PolicyTable | None = tells(aggregation, actions) if callable(tells) else None
    return found


def exact_table(policy: Policy, aggregation: Aggregation, actions: int) -> Floats | None:
    """Return the probabilities of `tabulated`, (cells, actions) or (steps, cells, actions)."""
    found = tabulated(policy, aggregation, actions)
    return None if found is None else found.probabilities


def looks_closer(policy: Policy, aggregation: Aggregation, actions: int) -> bool:
    """True if the policy may tell two states of a cell apart: then its values at a state need π at that state.

    Cells of a grid with scale 1 are taken to have one state each.
    """
    alone: bool = getattr(aggregation, "has_unit_cells", False)
    return not alone and tabulated(policy, aggregation, actions) is None


def expected_q(values: ValueModel, policy: Policy, states: States, step: Step) -> Floats:
    """Σ_a π(a|s) Q̂(s, a), with π at the states themselves: doubly robust estimates are unbiased only with this V̂."""
    pi = policy.probabilities(states, step)
    q = [values.q_hat(states, np.full(len(states), a), step) for a in range(pi.shape[1])]
    expected: Floats = np.einsum("na,an->n", pi, np.stack(q))
    return expected


def table_at(policy: Policy, states: States, horizon: int) -> Floats:
    """π(a|s) at given states: (n, actions), or (horizon, n, actions) where it depends on the step."""
    first = policy.probabilities(states, 0)
    if getattr(policy, "is_stationary", False):
        return first
    tables = np.stack([first, *(policy.probabilities(states, t) for t in range(1, horizon))])
    return first if (tables == first).all() else tables
