"""Checks of a domain's attributes and methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from offpolicy._util.scalars import as_whole
from offpolicy.testing.faults import Faults

#: Columns of a log that are not part of the state.
RESERVED = ("episode", "step", "action", "reward", "behavior_prob", "terminal")
NUMBER = (int, float, np.integer, np.floating)
METHODS = {
    "reset": "reset(n, rng) gives n first states",
    "step": "step(states, actions, rng) gives next states, rewards and which rows have ended",
    "legal": "legal(states) gives an (n, actions) array of what may be done",
    "simulate": "simulate(policy, n, seed) gives a log",
}


def check_attributes(faults: Faults, domain: Any) -> bool:
    """Note attributes that are missing or invalid; return whether the domain can be checked further."""
    before = len(faults.found)
    name = getattr(domain, "name", None)
    faults.expect(
        isinstance(name, str) and bool(name),
        "name",
        f"name is {name!r}",
        "name is a text, the one by which the hook offers the domain",
        'add `name: str = "my-domain"` to the class',
    )
    _columns(faults, getattr(domain, "state_columns", None))
    for count in ("actions", "horizon"):
        value = getattr(domain, count, None)
        faults.expect(
            (as_whole(value) or 0) >= 1,
            count,
            f"{count} is {value!r}",
            f"{count} is a whole number from 1: how many {'actions' if count == 'actions' else 'steps'} there are",
            f"add `{count}: int = …` to the class" if value is None else f"give {count} as an int",
        )
    discount = getattr(domain, "discount", None)
    faults.expect(
        isinstance(discount, NUMBER) and 0 <= discount <= 1,
        "discount",
        f"discount is {discount!r}",
        "discount γ is a number from 0 to 1",
        "add `discount: float = 1.0` to the class",
    )
    limits = getattr(domain, "reward_range", None)
    faults.expect(
        isinstance(limits, Sequence)
        and len(limits) == 2
        and all(isinstance(limit, NUMBER) and math.isfinite(limit) for limit in limits)
        and limits[0] <= limits[1],
        "reward_range",
        f"reward_range is {limits!r}",
        "reward_range is (lowest, highest) reward of a step, both finite",
        "add `reward_range: tuple[float, float] = (…, …)`; models and bounds need it",
    )
    _methods(faults, domain)
    if len(faults.found) == before:
        _optional(faults, domain)
    return len(faults.found) == before


def _columns(faults: Faults, columns: Any) -> None:
    named = isinstance(columns, Sequence) and not isinstance(columns, str)
    if not faults.expect(
        named and len(columns) > 0 and all(isinstance(column, str) and column for column in columns),
        "state_columns",
        f"state_columns is {columns!r}",
        "state_columns is a tuple of names, one for each column of the state",
        'add `state_columns: tuple[str, ...] = ("x", "y")`',
    ):
        return
    faults.expect(
        len(set(columns)) == len(columns) and not set(columns) & {*RESERVED, *(f"next_{name}" for name in columns)},
        "state_columns",
        f"state_columns is {columns!r}",
        f"names differ from each other and from the log's other columns ({', '.join(RESERVED)}, next_…)",
        "rename the column",
    )


def _methods(faults: Faults, domain: Any) -> None:
    for method, protocol in METHODS.items():
        faults.expect(
            callable(getattr(domain, method, None)),
            method,
            f"there is no method {method}",
            protocol,
            "write it" if method in ("reset", "step") else "name offpolicy.protocols.Domain as base to inherit it",
        )
    with faults.calling("behavior", "the property behavior"):
        faults.expect(
            hasattr(domain, "behavior") and not isinstance(domain.behavior, str),
            "behavior",
            "there is no policy as `behavior`",
            "behavior is the policy π0 that makes the logs",
            "add a property behavior, such as Uniform(self.actions, self.legal)",
        )


def _optional(faults: Faults, domain: Any) -> None:
    names = getattr(domain, "action_names", None)
    if names is not None:
        faults.expect(
            not isinstance(names, str)
            and isinstance(names, Sequence)
            and all(isinstance(name, str) for name in names)
            and len(set(names)) == len(names) == domain.actions,
            "action_names",
            f"action_names is {names!r}",
            f"action_names has a different name for each of the {domain.actions} actions",
            "name all of them, or leave action_names out",
        )
    policies = getattr(domain, "policies", None)
    if policies is not None:
        faults.expect(
            isinstance(policies, Mapping)
            and all(isinstance(name, str) for name in policies)
            and all(hasattr(made, "probabilities") or callable(made) for made in policies.values())
            and "behavior" not in policies,
            "policies",
            f"policies is {policies!r}",
            "policies maps names, other than 'behavior', to policies or to functions that make one",
            "return a dict such as {'careful': Uniform(self.actions)}",
        )
    plot = getattr(domain, "plot", None)
    if plot is not None:
        faults.expect(
            callable(plot),
            "plot",
            f"plot is a {type(plot).__name__}",
            "plot(log, episode) gives an Altair chart",
            "make it a method, or leave it out",
        )
