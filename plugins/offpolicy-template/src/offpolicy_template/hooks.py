"""The hooks of this package; `offpolicy` imports this module when it looks for one of the names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from offpolicy.hookspecs import hookimpl
from offpolicy.intervals import Method
from offpolicy.protocols import Domain, Estimator, Generator, ModelFitter

from offpolicy_template.by_wear import ByWear
from offpolicy_template.capped import CappedStepIs
from offpolicy_template.chebyshev import chebyshev
from offpolicy_template.machine import Machine
from offpolicy_template.thresholds import Thresholds


@hookimpl
def offpolicy_domains() -> Mapping[str, Callable[..., Domain]]:
    """Return the machine as a domain."""
    return {"machine": Machine}


@hookimpl
def offpolicy_model_fitters() -> Mapping[str, Callable[..., ModelFitter]]:
    """Return a fitter that counts by wear."""
    return {"by-wear": ByWear}


@hookimpl
def offpolicy_candidate_policies() -> Mapping[str, Callable[..., Generator]]:
    """Return a generator of policies that repair the machine from some wear on."""
    return {"thresholds": Thresholds}


@hookimpl
def offpolicy_estimators() -> Mapping[str, Callable[..., Estimator]]:
    """Step-wise importance sampling with capped weights."""
    return {"capped-step-is": CappedStepIs}


@hookimpl
def offpolicy_intervals() -> Mapping[str, Callable[..., Method]]:
    """Chebyshev's inequality."""
    return {"chebyshev": chebyshev}
