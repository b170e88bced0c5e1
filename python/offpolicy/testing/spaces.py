"""Checks of legal actions, and of a grid that must contain the states."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from offpolicy.protocols import States
from offpolicy.testing.faults import Faults


def check_legal(faults: Faults, domain: Any, states: States) -> NDArray[np.bool_]:
    """Note faults of `legal` and return its mask; all actions are legal if it cannot be used."""
    everything = np.ones((len(states), domain.actions), dtype=bool)
    with faults.calling("legal", "legal(states)"):
        given = states.copy()
        legal = domain.legal(given)
        faults.expect(
            np.array_equal(given, states),
            "legal-mutates",
            "legal changed the array of states that it was given",
            "arguments are never changed",
            "work on states.copy()",
        )
        if not _is_mask(faults, legal, everything.shape):
            return everything
        _is_mask(faults, domain.legal(states[:0].copy()), (0, domain.actions))
        stuck = ~legal.any(axis=1)
        if not faults.expect(
            not stuck.any(),
            "legal-none",
            f"no action is legal in the state {states[np.argmax(stuck)]}, where an episode goes on",
            "at least one action is legal in every state",
            "let step end the episode (done) before such a state, or allow an action that does nothing",
        ):
            return everything
        for i in range(min(16, len(states))):
            if not faults.expect(
                np.array_equal(domain.legal(states[i : i + 1].copy())[0], legal[i]),
                "legal-rows",
                f"legal says something else of the state {states[i]} alone than among others",
                "a row of the result depends on its own state alone",
                "look for a mean, maximum or `if` that mixes the rows",
            ):
                break
        return np.asarray(legal)
    return everything


def _is_mask(faults: Faults, legal: Any, shape: tuple[int, int]) -> bool:
    array = isinstance(legal, np.ndarray)
    return faults.expect(
        array and legal.shape == shape and legal.dtype == bool,
        "legal",
        f"legal(states) gave {f'{legal.dtype} of shape {legal.shape}' if array else type(legal).__name__}",
        f"legal gives an array of bool, shape (n, actions) = {shape}",
        "begin with np.ones((len(states), self.actions), dtype=bool) and take away what is forbidden",
    )


def check_grid(faults: Faults, domain: Any, states: States) -> None:
    """Note faults of the grid, if the domain has one."""
    grid = getattr(domain, "grid", None)
    if grid is None:
        return
    k = len(domain.state_columns)
    if not faults.expect(
        hasattr(grid, "index") and len(getattr(grid, "size", ())) == k,
        "grid",
        f"grid is {grid!r}",
        f"grid is an offpolicy.Grid with {k} coordinates, one for each column of the state",
        "make it with Grid.over(ranges, scale)",
    ):
        return
    try:
        grid.index(states)
    except Exception as error:
        faults.expect(
            False,
            "grid-covers",
            f"grid.index raised {type(error).__name__}: {error}",
            "the grid holds every state that can be reached, those where episodes end too",
            "make it larger, or keep states inside by np.clip in step",
        )
