"""Pictures in files: SVG, PNG, a page of HTML that loads nothing, or the Vega-Lite JSON itself."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

from offpolicy.errors import OffPolicyError, UsageError
from offpolicy.files import whole_file

FORMATS = ("svg", "png", "html", "json")


class InScript(json.JSONEncoder):
    r"""JSON inside a page's script, which no name in the data can end.

    >>> InScript().encode("</script>")
    '"\\u003c/script>"'
    """

    def encode(self, o: Any) -> str:
        r"""With every < as \u003c."""
        return super().encode(o).replace("<", r"\u003c")


#: A page carries its scripts in itself; a PNG has two pixels for each of the chart.
OPTIONS: dict[str, dict[str, Any]] = {
    "html": {"inline": True, "json_kwds": {"cls": InScript}},
    "png": {"scale_factor": 2},
}


def picture_format(path: Path) -> str:
    """The format that a file's name says, if it can be written here.

    >>> picture_format(Path("episode.svg"))
    'svg'
    >>> picture_format(Path("episode.bmp"))
    Traceback (most recent call last):
        ...
    offpolicy.errors.UsageError: a picture is a file .svg, .png, .html or .json, not 'episode.bmp'
    """
    found = path.suffix.lower().removeprefix(".")
    if found not in FORMATS:
        raise UsageError(f"a picture is a file .svg, .png, .html or .json, not {str(path)!r}")
    missing = [name for name in ("altair", "vl_convert") if importlib.util.find_spec(name) is None]
    if missing:
        raise OffPolicyError(f"a picture needs {' and '.join(missing)}: pip install 'offpolicy[plot]'")
    return found


def save(chart: Any, path: str | Path) -> None:
    """Writes an Altair chart, whole or not at all.

    >>> import altair as alt, polars as pl
    >>> chart = alt.Chart(pl.DataFrame({"x": [0, 1], "y": [0, 1]})).mark_line().encode(x="x", y="y")
    >>> save(chart, "line.svg")
    >>> Path("line.svg").read_text()[:4]
    '<svg'
    """
    path = Path(path)
    found = picture_format(path)
    import altair

    with altair.data_transformers.enable("default", max_rows=None), whole_file(path) as beside:
        chart.save(str(beside), format=found, **OPTIONS.get(found, {}))
