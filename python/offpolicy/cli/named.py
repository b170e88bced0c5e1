"""Domains and fitters by name; one that nothing has is wrong usage, as everywhere."""

from __future__ import annotations

from typing import Any

import click

import offpolicy as op
from offpolicy.plugins import registry
from offpolicy.protocols import Domain, ModelFitter


def make_domain(name: str, parameters: dict[str, Any]) -> Domain:
    """The domain with these parameters."""
    _check("offpolicy_domains", name)
    return op.domain(name, **parameters)


def make_fitter(name: str, parameters: dict[str, Any]) -> ModelFitter:
    """The model fitter with these parameters."""
    _check("offpolicy_model_fitters", name)
    return op.fitter(name, **parameters)


def _check(hook: str, name: str) -> None:
    try:
        registry().find(hook, name)
    except op.PluginError as error:
        raise click.UsageError(str(error)) from None
