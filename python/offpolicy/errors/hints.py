"""Hints at similar names, for messages about an unknown name."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches


def nearest(name: str, known: Collection[str]) -> str | None:
    """Return the known name that is most similar to an unknown one, or None if none is similar."""
    close = get_close_matches(name, list(known), n=1)
    return close[0] if close else None


def suggestion(name: str, known: Collection[str]) -> str:
    """Return a hint at a similar name, to be appended to a message, or an empty text.

    >>> suggestion("rewards", ["episode", "reward"])
    "; did you mean 'reward'?"
    """
    close = nearest(name, known)
    return "" if close is None else f"; did you mean {close!r}?"


def hint(name: str, known: Collection[str]) -> str:
    """Return a hint at a similar name, or the list of all known names if none is similar.

    >>> hint("drr", ["dr", "is"]), hint("x", ["dr", "is"])
    ("; did you mean 'dr'?", '; there are dr, is')
    """
    return suggestion(name, known) or (f"; there are {', '.join(known)}" if known else "")
