"""What this package brings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from offpolicy.hookspecs import hookimpl
from offpolicy.protocols import Domain

from offpolicy_mountain_car.domain import MountainCar


@hookimpl
def offpolicy_domains() -> Mapping[str, Callable[..., Domain]]:
    """The car."""
    return {MountainCar.name: MountainCar}
