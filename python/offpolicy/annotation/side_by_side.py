"""The values of several policies in one model: together where it can do that, which costs little more than one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from offpolicy.protocols import Model, Policy, ValueModel


def values_of(model: Model, policies: Sequence[Policy], horizon: int, discount: float) -> list[ValueModel]:
    """Q̂, V̂ and R̂ of each policy."""
    together: Callable[[Sequence[Policy], int, float], list[ValueModel]] | None = getattr(model, "values_of", None)
    if together is None:
        return [model.values(policy, horizon, discount) for policy in policies]
    return together(policies, horizon, discount)
