"""The former module of the donations' experiment; it re-exports the names of `offpolicy_paper.kdd98`."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Return the object of that name from the package `offpolicy-paper`."""
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return getattr(import_module("offpolicy_paper.kdd98"), name)
    except ModuleNotFoundError as error:
        raise ImportError(f"{error}; the paper's experiments are a package: pip install offpolicy-paper") from None
