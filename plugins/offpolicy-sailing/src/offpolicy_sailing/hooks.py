"""The hooks of this package."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from offpolicy.hookspecs import hookimpl
from offpolicy.protocols import Domain


@hookimpl
def offpolicy_domains() -> Mapping[str, Callable[..., Domain]]:
    """Return the Sailing domain."""
    from offpolicy_sailing.domain import Sailing

    return {"sailing": Sailing}
