"""The hooks through which packages add to `offpolicy`; each returns a mapping of names to makers.

The documentation lists the first lines of their docstrings as what each hook brings.

A maker is a class or function that takes only keyword arguments, all with defaults: `{"sailing": Sailing}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pluggy

from offpolicy.experiments.experiment import Study
from offpolicy.intervals import Method
from offpolicy.protocols import Domain, Estimator, Generator, ModelFitter

GROUP = "offpolicy"
hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)


@hookspec
def offpolicy_domains() -> Mapping[str, Callable[..., Domain]]:
    """Domains to simulate."""
    return {}


@hookspec
def offpolicy_model_fitters() -> Mapping[str, Callable[..., ModelFitter]]:
    """Fitters of models to a log."""
    return {}


@hookspec
def offpolicy_candidate_policies() -> Mapping[str, Callable[..., Generator]]:
    """Generators of candidate policies for safe improvement."""
    return {}


@hookspec
def offpolicy_experiments() -> Mapping[str, Callable[..., Study]]:
    """Experiments for `offpolicy reproduce`; a maker takes no arguments."""
    return {}


@hookspec
def offpolicy_estimators() -> Mapping[str, Callable[..., Estimator]]:
    """Estimators by id, for `evaluate(estimators=[...])` and all that is built on it; a maker takes no arguments."""
    return {}


@hookspec
def offpolicy_intervals() -> Mapping[str, Callable[..., Method]]:
    """Confidence intervals by name, for `interval=`; a maker takes no arguments."""
    return {}
