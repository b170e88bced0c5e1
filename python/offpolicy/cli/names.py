"""Names on the command line; an unknown name is wrong usage."""

from __future__ import annotations

from typing import Any

import click

import offpolicy as op
from offpolicy.extensions.plugins import registry
from offpolicy.protocols import Domain, ModelFitter


def check_name(hook: str, name: str) -> str:
    """Return the name, and refuse one that no plugin provides through that hook."""
    try:
        registry().find(hook, name)
    except op.PluginError as error:
        raise click.UsageError(error.in_words("cli")) from None
    return name


def make_domain(name: str, parameters: dict[str, Any]) -> Domain:
    """Return the domain of that name, made with these parameters."""
    return op.domain(check_name("offpolicy_domains", name), **parameters)


def choose_fitter(name: str, parameters: dict[str, Any]) -> str | ModelFitter:
    """Return the model fitter of that name if there are parameters; otherwise the name, which results show."""
    check_name("offpolicy_model_fitters", name)
    return op.fitter(name, **parameters) if parameters else name
