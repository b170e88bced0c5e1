"""A picture that a notebook shows and that can be saved."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from offpolicy._util import plotting


@dataclass(frozen=True)
class Figure:
    """A picture of a result; `chart` is the Altair chart that it is made of.

    >>> import offpolicy as op
    >>> figure = op.evaluate(op.demo_log(), discount=0.9).figure("forest")
    >>> figure
    Figure(kind='forest')
    >>> figure.save("forest.svg")
    """

    kind: str
    chart: Any = field(repr=False, compare=False)

    def save(self, path: str | Path) -> None:
        """Write a file `.svg`, `.png`, `.html` or `.json` (Vega-Lite); the HTML page loads no other files."""
        plotting.save(self.chart, path)

    def to_dict(self) -> dict[str, Any]:
        """Return the Vega-Lite specification with the data."""
        return plotting.described(self.chart)

    def _repr_svg_(self) -> str:
        """Return the picture that a notebook shows; it needs no script."""
        return plotting.svg(self.chart)
