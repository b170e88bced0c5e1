"""What this package brings; `offpolicy` imports this module when one of the names is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from offpolicy.hookspecs import hookimpl
from offpolicy.protocols import Domain, Generator

from offpolicy_template.machine import Machine
from offpolicy_template.thresholds import Thresholds


@hookimpl
def offpolicy_domains() -> Mapping[str, Callable[..., Domain]]:
    """The machine."""
    return {"machine": Machine}


@hookimpl
def offpolicy_candidate_policies() -> Mapping[str, Callable[..., Generator]]:
    """Policies that repair it from some wear on."""
    return {"thresholds": Thresholds}
