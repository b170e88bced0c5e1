"""Hints at a name that is nearly right; the only place that looks for one."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches


def nearest(name: str, known: Collection[str]) -> str | None:
    """Return the known name that is most like one that is not known."""
    close = get_close_matches(name, list(known), n=1)
    return close[0] if close else None


def suggestion(name: str, known: Collection[str]) -> str:
    """Return a hint at a name that is nearly right, to be put after what was said.

    >>> suggestion("rewards", ["episode", "reward"])
    "; did you mean 'reward'?"
    """
    close = nearest(name, known)
    return "" if close is None else f"; did you mean {close!r}?"


def hint(name: str, known: Collection[str]) -> str:
    """Return a hint at a name that is nearly right, or all that are known.

    >>> hint("drr", ["dr", "is"]), hint("x", ["dr", "is"])
    ("; did you mean 'dr'?", '; there are dr, is')
    """
    return suggestion(name, known) or (f"; there are {', '.join(known)}" if known else "")
