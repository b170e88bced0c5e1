"""Pictures of a result: one file per kind, and one line per file in `KINDS`.

Each file has a function `draw(result)`, which returns an Altair chart. It is imported only when its kind is drawn,
because Altair is an extra of the package.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from offpolicy._util import scalars
from offpolicy._util.optional import imported
from offpolicy.figures.figure import Figure

#: The module that draws each kind.
KINDS = {
    "forest": "offpolicy.figures.forest",
}


def draw(result: Any, kind: str) -> Figure:
    """Draw a result.

    >>> import offpolicy as op
    >>> draw(op.evaluate(op.demo_log(), discount=0.9), "pie")
    Traceback (most recent call last):
        ...
    offpolicy.errors.UsageError: kind must be one of 'forest', not 'pie'
    """
    scalars.choice("kind", kind, tuple(KINDS))
    imported("altair", extra="plot", to="draw a figure")
    return Figure(kind, import_module(KINDS[kind]).draw(result))
