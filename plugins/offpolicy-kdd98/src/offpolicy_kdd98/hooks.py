"""The hooks of this package."""

from collections.abc import Callable, Mapping

from offpolicy.hookspecs import hookimpl
from offpolicy.protocols import Domain


@hookimpl
def offpolicy_domains() -> Mapping[str, Callable[..., Domain]]:
    """Return the donation domain."""
    from offpolicy_kdd98.domain import Kdd98

    return {"kdd98": Kdd98}
