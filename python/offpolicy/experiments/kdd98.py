"""The former place of the donations' experiment, which now is `offpolicy_paper.kdd98`; the names are found here too."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Return what the package `offpolicy-paper` has by that name."""
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return getattr(import_module("offpolicy_paper.kdd98"), name)
    except ModuleNotFoundError as error:
        raise ImportError(f"{error}; the paper's experiments are a package: pip install offpolicy-paper") from None
