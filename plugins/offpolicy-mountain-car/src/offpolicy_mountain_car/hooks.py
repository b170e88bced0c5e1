"""The hooks of this package."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from offpolicy.hookspecs import hookimpl
from offpolicy.protocols import Domain

from offpolicy_mountain_car.domain import MountainCar


@hookimpl
def offpolicy_domains() -> Mapping[str, Callable[..., Domain]]:
    """Return the Mountain Car domain."""
    return {MountainCar.name: MountainCar}
