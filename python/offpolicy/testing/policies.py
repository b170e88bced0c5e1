"""Checks that apply to every policy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from offpolicy._util.probabilities import ROUNDING
from offpolicy.protocols import Floats, Policy, States
from offpolicy.testing.faults import Faults

#: The number of rows that are checked one by one.
SINGLE_ROWS = 16


def check_policy(
    faults: Faults, policy: Any, who: str, states: States, actions: int, legal: NDArray[np.bool_], horizon: int
) -> bool:
    """Note faults of a policy on these states; return whether it can be used."""
    if not faults.expect(
        callable(getattr(policy, "probabilities", None)),
        "policy-call",
        f"{who} is {_kind(policy)}, which has no method probabilities(states, step)",
        "a policy is an object with probabilities(states, step)",
        "give a policy of offpolicy.policies, such as FromCallable(function)",
    ):
        return False
    before = len(faults.found)
    with faults.calling("policy-call", f"{who}.probabilities(states, 0)"):
        given = states.copy()
        pi = policy.probabilities(given, 0)
        faults.expect(
            np.array_equal(given, states),
            "policy-mutates",
            f"{who} changed the array of states that it was given",
            "arguments are never changed",
            "work on states.copy()",
        )
        if _rows_are_fair(faults, pi, who, states, actions, legal):
            _repeats(faults, policy, who, states, pi)
            _row_by_row(faults, policy, who, states, pi)
            _step_arrays(faults, policy, who, states, horizon)
            _no_rows(faults, policy, who, states, actions)
    return len(faults.found) == before


def _rows_are_fair(faults: Faults, pi: Any, who: str, states: States, actions: int, legal: NDArray[np.bool_]) -> bool:
    shape = (len(states), actions)
    if not faults.expect(
        isinstance(pi, np.ndarray) and pi.shape == shape and np.issubdtype(pi.dtype, np.floating),
        "policy-shape",
        f"{who}.probabilities gave {_kind(pi)} for {len(states)} states",
        f"a float array of shape (n, actions) = {shape}",
        "return np.ndarray with a row for every state, for all rows at once",
    ):
        return False
    fair = (
        np.isfinite(pi).all(axis=1) & (pi >= 0).all(axis=1) & (np.abs(pi.sum(axis=1, dtype=np.float64) - 1) <= ROUNDING)
    )
    row = int(np.argmin(fair))
    whole = faults.expect(
        bool(fair.all()),
        "policy-probabilities",
        f"{who} gave {pi[row]} for the state {states[row]}",
        f"every row holds numbers from 0 to 1 that add to 1 (to {ROUNDING:g})",
        "divide each row by its sum, and find where a number below 0 or NaN comes from",
    )
    forbidden = ((pi > 0) & ~legal).any(axis=1)
    row = int(np.argmax(forbidden))
    return whole & faults.expect(
        not forbidden.any(),
        "policy-legal",
        f"{who} gave {pi[row]} for the state {states[row]}, where legal() allows {legal[row]}",
        "a forbidden action has probability 0",
        "multiply by legal(states) before dividing by the sum, or use Uniform(actions, legal)",
    )


def _repeats(faults: Faults, policy: Policy, who: str, states: States, pi: Floats) -> None:
    faults.expect(
        np.array_equal(policy.probabilities(states.copy(), 0), pi),
        "policy-repeat",
        f"{who} gave other probabilities when asked again",
        "π(a|s) is a function of states and step alone",
        "draw nothing at random in probabilities(), and keep no state between calls",
    )


def _row_by_row(faults: Faults, policy: Policy, who: str, states: States, pi: Floats) -> None:
    for i in range(min(SINGLE_ROWS, len(states))):
        alone = policy.probabilities(states[i : i + 1].copy(), 0)
        if not faults.expect(
            alone.shape == pi[i : i + 1].shape and np.allclose(alone[0], pi[i], rtol=0, atol=ROUNDING),
            "policy-rows",
            f"{who} gave {alone} for the state {states[i]} alone and {pi[i]} among others",
            "a row of the result depends on its own state alone",
            "look for a mean, maximum or sort over axis 0",
        ):
            return


def _step_arrays(faults: Faults, policy: Policy, who: str, states: States, horizon: int) -> None:
    steps = np.arange(len(states)) % horizon
    with faults.calling("policy-steps", f"{who}.probabilities(states, array of {len(steps)} steps)"):
        mixed = policy.probabilities(states.copy(), steps)
        for step in range(min(horizon, 4)):
            rows = steps == step
            if not rows.any():
                return
            apart = policy.probabilities(states[rows].copy(), step)
            if not faults.expect(
                mixed.shape[0] == len(states) and np.allclose(mixed[rows], apart, rtol=0, atol=ROUNDING),
                "policy-steps",
                f"{who} gives other probabilities for an array of steps than for step {step} as a number",
                "step is one number for all rows or an array of n",
                "broadcast it: np.broadcast_to(step, len(states))",
            ):
                return


def _no_rows(faults: Faults, policy: Policy, who: str, states: States, actions: int) -> None:
    with faults.calling("policy-empty", f"{who}.probabilities of no state"):
        none = policy.probabilities(states[:0].copy(), 0)
        faults.expect(
            none.shape == (0, actions),
            "policy-empty",
            f"{who} gave an array of shape {none.shape} for no state",
            f"no state gives an array of shape (0, {actions}), for a part of a log may be empty",
            "return early for len(states) == 0",
        )


def _kind(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}, shape {value.shape}"
    return f"a {type(value).__name__}"
