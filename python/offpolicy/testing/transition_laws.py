"""Checks of P(s'|s, a) of a domain and P̂(s'|s, a) of a model, where they have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offpolicy.annotation.transition_ratio import knows_transitions, refusal
from offpolicy.policies import every_action
from offpolicy.protocols import Actions, Floats, States
from offpolicy.simulation.rollouts import draw
from offpolicy.testing.faults import Faults
from offpolicy.testing.values import SAME
from offpolicy.testing.walk import PLACES, Walk

#: The number of pairs (s, a), of draws for each, and of standard errors by which a share may be off.
PAIRS, DRAWS, ERRORS = 8, 2000, 6.0
#: A sum of probabilities may exceed 1 by this much because of rounding.
ROUNDING = 1e-9
ROWS = 64


def check_law(faults: Faults, domain: Any, states: States, legal: NDArray[np.bool_], seed: int) -> None:
    """Note where P(s'|s, a) of a domain differs from the frequencies of its steps."""
    if not knows_transitions(domain):
        return
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(states))[:PAIRS]
    actions = draw(legal[chosen] / legal[chosen].sum(axis=1, keepdims=True), rng)
    with faults.calling("transition-call", "transition_probability(states, actions, next_states)"):
        _is_column(faults, "transition-shape", domain, states[:0], actions[:0], states[:0], nan=False)
        for state, action in zip(states[chosen], actions, strict=True):
            _steps_agree(faults, domain, state, int(action), rng)


def _steps_agree(faults: Faults, domain: Any, state: States, action: int, rng: np.random.Generator) -> None:
    copies = np.repeat(state[None], DRAWS, axis=0), np.full(DRAWS, action)
    then, _, done = domain.step(copies[0].copy(), copies[1].copy(), rng)
    following, times = np.unique(then[~done], axis=0, return_counts=True)
    n = len(following)
    p = _is_column(faults, "transition-shape", domain, copies[0][:n], copies[1][:n], following, nan=False)
    if p is None:
        return
    share = times / DRAWS
    off = np.abs(share - p) > ERRORS * np.sqrt(p * (1 - p) / DRAWS) + ERRORS / DRAWS
    off |= p == 0
    row = int(np.argmax(off)) if n else 0
    faults.expect(
        not off.any(),
        "transition-step",
        f"{times[row] if n else 0} of {DRAWS} steps with action {action} led from {state} to "
        f"{following[row] if n else None} and went on, and transition_probability is {p[row] if n else None}",
        "transition_probability(s, a, s') is the chance that the episode goes on in s'",
        "compute it from what step does; where the episode ends in s', it does not go on there",
    )
    faults.expect(
        p.sum() <= 1 + ROUNDING,
        "transition-sum",
        f"the probabilities of {n} states that followed {state} and action {action} add to {p.sum()}",
        "over all s' they add to 1, less the chance to end",
        "divide by what they add to",
    )


def check_model_law(faults: Faults, values: Any, who: str, domain: Any, log: pl.DataFrame) -> None:
    """Note where P̂(s'|s, a) of a value model is not a probability or does not fit its own V̂."""
    if not knows_transitions(values):
        return
    with faults.calling("p-hat-call", f"transition_probability in the {who}"):
        if refusal(values, len(domain.state_columns)) is not None:
            return
        rows = log.filter(~pl.col("terminal"))
        rows = rows.gather_every(max(1, rows.height // ROWS))
        states, following = (
            rows.select(names).to_numpy()
            for names in (domain.state_columns, [f"next_{name}" for name in domain.state_columns])
        )
        actions = rows["action"].to_numpy().astype(np.int64)
        p_hat = _is_column(faults, "p-hat-shape", values, states, actions, following, nan=True)
        if p_hat is None:
            return
        other = values.transition_probability(states, actions, states)
        faults.expect(
            np.array_equal(np.isnan(p_hat), np.isnan(other)),
            "p-hat-pairs",
            f"transition_probability in the {who} is NaN for some next states of a pair only",
            "it is NaN for a pair (s, a) that the model knows nothing of, whatever s' is",
            "ask whether the pair was seen; a next state that was not seen after it has 0",
        )
        if isinstance(domain, Walk):
            _made_v_hat(faults, values, who, domain)


def _made_v_hat(faults: Faults, values: Any, who: str, walk: Walk) -> None:
    """Check Q̂_0 = R̂ + γ Σ P̂ V̂_1 on the walk, all next states of which are known."""
    places = np.arange(1, PLACES - 1)[:, None]
    pairs = np.repeat(places, walk.actions, axis=0), np.tile(np.arange(walk.actions), len(places))
    p_hat = np.stack(
        [values.transition_probability(*pairs, np.full_like(pairs[0], then)) for then in places[:, 0]],
        axis=1,
    )
    known = ~np.isnan(p_hat).any(axis=1)
    q = every_action(values, walk.actions)(places, 0).ravel()
    expected = values.r_hat(*pairs) + walk.discount * p_hat @ values.v_hat(places, 1)
    off = known & ~np.isclose(q, expected, **SAME)
    row = int(np.argmax(off))
    faults.expect(
        not off.any(),
        "p-hat-values",
        f"Q̂ in the {who} of {pairs[0][row]} and action {pairs[1][row]} is {q[row]}, and R̂ + γ Σ P̂ V̂ is {expected[row]}",
        "P̂ is what made V̂: Q̂(s, a) = R̂(s, a) + γ Σ_s' P̂(s'|s, a) V̂(s'), for DR-v2 is unbiased only then",
        "tell the P̂ with which the values are computed, or none: leave transition_probability out",
    )


def _is_column(
    faults: Faults, rule: str, whose: Any, states: States, actions: Actions, following: States, nan: bool
) -> Floats | None:
    """Return the probabilities if there is a valid one for each row; note a fault otherwise."""
    given = states.copy(), actions.copy(), following.copy()
    found = whose.transition_probability(*given)
    same = all(np.array_equal(a, b) for a, b in zip(given, (states, actions, following), strict=True))
    array = isinstance(found, np.ndarray) and found.shape == (len(states),) and found.dtype.kind == "f"
    sound = array and bool((((found >= 0) & (found <= 1 + ROUNDING)) | (nan & np.isnan(found))).all())
    what = f"{found.dtype} of shape {found.shape}" if isinstance(found, np.ndarray) else type(found).__name__
    right = faults.expect(
        same and sound,
        rule,
        f"transition_probability gave {what}, or no probabilities, or changed what it was given",
        f"it gives n floats from 0 to 1: shape ({len(states)},)" + (", NaN for an unknown pair" if nan else ""),
        "return one number a row, and work on copies",
    )
    return found if right else None
