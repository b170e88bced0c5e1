"""What a command line names; a name that nothing has is wrong usage."""

from __future__ import annotations

from typing import Any

import click

import offpolicy as op
from offpolicy.extensions.plugins import registry
from offpolicy.protocols import Domain, ModelFitter


def check_name(hook: str, name: str) -> str:
    """The name, if a plugin brings it through that hook."""
    try:
        registry().find(hook, name)
    except op.PluginError as error:
        raise click.UsageError(error.in_words("cli")) from None
    return name


def make_domain(name: str, parameters: dict[str, Any]) -> Domain:
    """The domain of that name."""
    return op.domain(check_name("offpolicy_domains", name), **parameters)


def choose_fitter(name: str, parameters: dict[str, Any]) -> str | ModelFitter:
    """The model fitter of that name, if it has parameters; otherwise the name, by which a result calls it."""
    check_name("offpolicy_model_fitters", name)
    return op.fitter(name, **parameters) if parameters else name
