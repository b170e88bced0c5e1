"""Pictures of an evaluation: one file per kind, and one line per file in `KINDS`.

Each file has a function `draw(judged)`, which returns an Altair chart of plain values (`judged`). It is imported only
when its kind is drawn, because Altair is an extra of the package.
"""

from __future__ import annotations

from importlib import import_module

from offpolicy._util import scalars
from offpolicy._util.optional import imported
from offpolicy.figures.figure import Figure
from offpolicy.figures.judged import JudgedTable

#: The module that draws each kind.
KINDS = {
    "forest": "offpolicy.figures.forest",
}


def draw(judged: JudgedTable, kind: str) -> Figure:
    """Draw a table of estimates with its verdicts.

    >>> import offpolicy as op
    >>> op.evaluate(op.demo_log(), discount=0.9).figure("pie")
    Traceback (most recent call last):
        ...
    offpolicy.errors.UsageError: kind must be one of 'forest', not 'pie'
    """
    scalars.choice("kind", kind, tuple(KINDS))
    imported("altair", extra="plot", to="draw a figure")
    return Figure(kind, import_module(KINDS[kind]).draw(judged))
