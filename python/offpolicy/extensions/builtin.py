"""The built-in plugin of `offpolicy`, which uses the same hooks as any other package."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from offpolicy.drivers.mixtures import Mixtures
from offpolicy.hookspecs import hookimpl
from offpolicy.models.fitters.factored import Factored
from offpolicy.models.fitters.fqe import Fqe
from offpolicy.models.fitters.kernel import Kernel
from offpolicy.models.fitters.recurrent import Recurrent
from offpolicy.models.fitters.tabular import Tabular
from offpolicy.protocols import Domain, Generator, ModelFitter
from offpolicy.simulation import gym


@hookimpl
def offpolicy_domains() -> Mapping[str, Callable[..., Domain]]:
    """Return the domains of this package."""
    return {"gymnasium": gym.by_id}


@hookimpl
def offpolicy_model_fitters() -> Mapping[str, Callable[..., ModelFitter]]:
    """Return the fitters of this package."""
    return {"tabular": Tabular, "kernel": Kernel, "factored": Factored, "fqe": Fqe, "recurrent": Recurrent}


@hookimpl
def offpolicy_candidate_policies() -> Mapping[str, Callable[..., Generator]]:
    """Return the generators of this package."""
    return {"mixture": Mixtures}
