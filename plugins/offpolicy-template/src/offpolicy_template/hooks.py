"""What this package brings; `offpolicy` imports this module when one of the names is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from offpolicy.hookspecs import hookimpl
from offpolicy.protocols import Domain, Generator, ModelFitter

from offpolicy_template.by_wear import ByWear
from offpolicy_template.machine import Machine
from offpolicy_template.thresholds import Thresholds


@hookimpl
def offpolicy_domains() -> Mapping[str, Callable[..., Domain]]:
    """The machine."""
    return {"machine": Machine}


@hookimpl
def offpolicy_model_fitters() -> Mapping[str, Callable[..., ModelFitter]]:
    """A model that counts by wear."""
    return {"by-wear": ByWear}


@hookimpl
def offpolicy_candidate_policies() -> Mapping[str, Callable[..., Generator]]:
    """Policies that repair it from some wear on."""
    return {"thresholds": Thresholds}
