"""What this package brings to `offpolicy`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from offpolicy.hookspecs import hookimpl
from offpolicy.protocols import Domain


@hookimpl
def offpolicy_domains() -> Mapping[str, Callable[..., Domain]]:
    """The lake."""
    from offpolicy_sailing.domain import Sailing

    return {"sailing": Sailing}
