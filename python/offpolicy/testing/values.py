"""Checks of a model's values of one policy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from offpolicy.policies import every_action
from offpolicy.protocols import Policy, States, ValueModel
from offpolicy.testing.faults import Faults
from offpolicy.testing.walk import Walk

#: The tolerance between two computations of one number.
SAME: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-9}
SINGLE_ROWS = 8

Whole = NDArray[np.int64]


def check_values(
    faults: Faults, values: Any, who: str, policy: Policy, states: States, actions: Whole, steps: Whole, domain: Any
) -> None:
    """Note faults of Q̂, V̂ and R̂."""
    given = states.copy(), actions.copy(), steps.copy()
    q, v, r = values.q_hat(*given), values.v_hat(given[0], given[2]), values.r_hat(*given[:2])
    faults.expect(
        all(np.array_equal(a, b) for a, b in zip(given, (states, actions, steps), strict=True)),
        "values-mutates",
        f"{who} changed the arrays that they were given",
        "arguments are never changed",
        "work on copies",
    )
    shaped = [_is_column(faults, x, f"{name} in the {who}", len(states)) for name, x in _named(q, v, r)]
    if not all(shaped):
        return
    _consistent(faults, values, who, policy, states, steps, v, domain.actions)
    _row_by_row(faults, values, who, states, actions, steps, q, v)
    _no_rows(faults, values, who, states, actions)
    if isinstance(domain, Walk):
        first, last = values.v_hat(states, 0), values.v_hat(states, domain.horizon - 1)
        faults.expect(
            not np.allclose(first, last, **SAME),
            "values-steps",
            f"V̂ in the {who} is the same with 1 step left as with {domain.horizon}",
            "q_hat and v_hat at a step are those of the horizon - step steps that remain",
            "compute values backwards from the horizon and keep those of every step",
        )


def _named(q: Any, v: Any, r: Any) -> list[tuple[str, Any]]:
    return [("q_hat", q), ("v_hat", v), ("r_hat", r)]


def _is_column(faults: Faults, x: Any, what: str, n: int) -> bool:
    array = isinstance(x, np.ndarray)
    return faults.expect(
        array and x.shape == (n,) and x.dtype.kind == "f" and bool(np.isfinite(x).all()),
        "values-shape",
        f"{what} is {f'{x.dtype} of shape {x.shape}' if array else type(x).__name__}, or not finite",
        f"q_hat, v_hat and r_hat give n finite floats: shape ({n},)",
        "return one number a row; give unseen states a value too",
    )


def _consistent(
    faults: Faults, values: ValueModel, who: str, policy: Policy, states: States, steps: Whole, v: Any, actions: int
) -> None:
    pi, q = policy.probabilities(states, steps), every_action(values, actions)(states, steps)
    mean = (pi * np.where(pi > 0, q, 0)).sum(axis=1)
    off = np.abs(mean - v)
    row = int(np.argmax(off))
    faults.expect(
        bool((off <= 1e-9 * np.maximum(1, np.abs(mean))).all()),
        "values-v",
        f"V̂ in the {who} is {v[row]} in the state {states[row]} at step {steps[row]}, and Σ π Q̂ is {mean[row]}",
        "v_hat(s) = Σ_a π(a|s) q_hat(s, a), to 1e-9: doubly robust estimates are unbiased only then",
        "compute v_hat from q_hat and policy.probabilities",
    )


def _row_by_row(
    faults: Faults, values: ValueModel, who: str, states: States, actions: Whole, steps: Whole, q: Any, v: Any
) -> None:
    for i in range(min(SINGLE_ROWS, len(states))):
        state, step = states[i : i + 1], int(steps[i])
        alone = values.q_hat(state, actions[i : i + 1], step)[0], values.v_hat(state, step)[0]
        if not faults.expect(
            np.allclose(alone, (q[i], v[i]), **SAME),
            "values-rows",
            f"Q̂, V̂ in the {who} of {states[i]} at step {step} are {alone} alone and {q[i], v[i]} among others",
            "a row depends on its own state, action and step; step is a number or an array of n",
            "broadcast the step and mix no rows",
        ):
            return


def _no_rows(faults: Faults, values: ValueModel, who: str, states: States, actions: Whole) -> None:
    with faults.calling("values-empty", f"{who} of no state"):
        none = values.q_hat(states[:0], actions[:0], 0), values.v_hat(states[:0], 0)
        faults.expect(
            all(x.shape == (0,) for x in none),
            "values-empty",
            f"{who} of no state have the shapes {[x.shape for x in none]}",
            "no state gives no value, for a part of a log may be empty",
            "return early for len(states) == 0",
        )
