"""Draw the pictures of the documentation anew: `python tools/pictures.py [NAME...]`.

Each picture is a function without arguments that returns a figure, and has the name of its file in docs/pictures. The
description of a picture, with its data, is kept in the SVG. By it a test can tell whether the file is up to date even
where another version of the renderer would write other bytes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import offpolicy as op
from offpolicy.figures.figure import Figure

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
SVG = "http://www.w3.org/2000/svg"
#: Significant digits of the numbers in a description, because other processors may round the last ones differently.
DIGITS = 12


def forest() -> Figure:
    """Draw the estimates of the demo's log."""
    return op.evaluate(op.demo_log(), discount=0.9).figure("forest")


PICTURES: dict[str, Callable[[], Figure]] = {"forest": forest}


def description(figure: Figure) -> dict[str, Any]:
    """Return the description of a figure, without the parts that depend on the version of Altair."""
    spec = figure.to_dict()
    (rows,) = spec.pop("datasets").values()
    for name in ("$schema", "data"):
        spec.pop(name, None)
    return dict(_rounded({**spec, "rows": rows}))


def _rounded(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _rounded(each) for key, each in part.items()}
    if isinstance(part, list):
        return [_rounded(each) for each in part]
    return float(f"{part:.{DIGITS}g}") if isinstance(part, float) else part


def kept(name: str) -> dict[str, Any]:
    """Return the description in the file of a picture."""
    metadata = ElementTree.parse(FOLDER / f"{name}.svg").getroot().find(f"{{{SVG}}}metadata")
    return dict(json.loads("" if metadata is None else metadata.text or ""))


def write(name: str) -> Path:
    """Write the file of a picture, with its description."""
    figure, path = PICTURES[name](), FOLDER / f"{name}.svg"
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(figure._repr_svg_())
    metadata = ElementTree.Element(f"{{{SVG}}}metadata")
    metadata.text = json.dumps(description(figure), sort_keys=True)
    root.insert(0, metadata)
    path.write_text(ElementTree.tostring(root, encoding="unicode") + "\n")
    return path


if __name__ == "__main__":
    for asked in sys.argv[1:] or PICTURES:
        print(write(asked).relative_to(FOLDER.parents[1]))
