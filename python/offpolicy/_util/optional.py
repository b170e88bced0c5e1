"""Optional packages, imported on use, with an error that names a missing one."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from offpolicy.errors import OffPolicyError
from offpolicy.errors.kinds.of_arguments import missing_extra


def imported(module: str, extra: str, to: str) -> Any:
    """Import a module, or raise an error that says how to install it.

    >>> imported("no_such_module", extra="learn", to="fit trees")
    Traceback (most recent call last):
        ...
    offpolicy.errors.OffPolicyError: to fit trees, install the extra 'learn': pip install 'offpolicy[learn]'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        raise needs_extra(extra, to) from None


def needs_extra(extra: str, to: str) -> OffPolicyError:
    """Make the error that names the extra to install.

    >>> print(needs_extra("plot", "draw a figure"))
    to draw a figure, install the extra 'plot': pip install 'offpolicy[plot]'
    """
    return missing_extra(what=f"to {to}, install the extra {extra!r}", extra=f"offpolicy[{extra}]")
