"""Pictures in files: SVG, PNG, an HTML page that loads no other files, or the Vega-Lite JSON itself."""

from __future__ import annotations

import importlib.util
import json
import re
from hashlib import blake2b
from io import StringIO
from pathlib import Path
from typing import Any

from offpolicy._util.files import whole_file
from offpolicy._util.optional import needs_extra
from offpolicy.errors.kinds.of_arguments import unknown_ending

FORMATS = ("svg", "png", "html", "json")
#: Code points that pictures cannot have: control characters except tabs and line ends, surrogates, noncharacters.
UNDRAWABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
#: The largest number of characters of a text in a picture.
LONGEST = 400
#: Parts of a Vega-Lite specification that are code, not text to draw.
CODE = frozenset({"$schema", "expr", "filter", "calculate", "labelExpr", "test", "config"})


class InScript(json.JSONEncoder):
    r"""An encoder of JSON for a page's script, which no text in the data can end.

    >>> InScript().encode("</script>")
    '"\\u003c/script>"'
    """

    def encode(self, o: Any) -> str:
        r"""Return JSON with every < as \u003c."""
        return super().encode(o).replace("<", r"\u003c")


#: An HTML page contains its scripts; a PNG has two pixels per pixel of the chart, in each direction.
OPTIONS: dict[str, dict[str, Any]] = {
    "html": {"inline": True, "json_kwds": {"cls": InScript}},
    "png": {"scale_factor": 2},
}


def picture_format(path: Path) -> str:
    """Return the format that a file's name implies; raise an error if it cannot be written.

    >>> picture_format(Path("episode.svg"))
    'svg'
    >>> picture_format(Path("episode.bmp"))
    Traceback (most recent call last):
        ...
    offpolicy.errors.UsageError: a picture is a file .svg, .png, .html or .json, not 'episode.bmp'
    """
    found = path.suffix.lower().removeprefix(".")
    if found not in FORMATS:
        raise unknown_ending(what="a picture", forms="a file .svg, .png, .html or .json", found=repr(str(path)))
    if any(importlib.util.find_spec(name) is None for name in ("altair", "vl_convert")):
        raise needs_extra("plot", "draw a figure")
    return found


def drawable(part: Any) -> Any:
    r"""Return a part of a chart's specification in which every text can be drawn quickly.

    A control character would crash the process in the library that writes pictures, and a name of 100,000 characters
    would take minutes. Long texts keep their beginning and get a checksum, so that different texts stay different.

    >>> drawable({"text": ["a\x1b", "b"]})
    {'text': ['a\\x1b', 'b']}
    """
    if isinstance(part, dict):
        return {drawable(key): each if key in CODE else drawable(each) for key, each in part.items()}
    if isinstance(part, list | tuple):
        return [drawable(each) for each in part]
    if not isinstance(part, str):
        return part
    text = UNDRAWABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), part)
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… {blake2b(text.encode(), digest_size=4).hexdigest()}"


def described(chart: Any) -> dict[str, Any]:
    """Return the Vega-Lite specification of an Altair chart with all its data, in which every text can be drawn."""
    import altair

    with altair.data_transformers.enable("default", max_rows=None):
        clean: dict[str, Any] = drawable(chart.to_dict(validate=False))
    return clean


def svg(chart: Any) -> str:
    """Return an Altair chart as SVG."""
    page = StringIO()
    _write(chart, page, "svg")
    return page.getvalue()


def save(chart: Any, path: str | Path) -> None:
    """Write an Altair chart completely or not at all.

    >>> import altair as alt, polars as pl
    >>> chart = alt.Chart(pl.DataFrame({"x": [0, 1], "y": [0, 1]})).mark_line().encode(x="x", y="y")
    >>> save(chart, "line.svg")
    >>> Path("line.svg").read_text()[:4]
    '<svg'
    """
    path = Path(path)
    found = picture_format(path)
    with whole_file(path) as beside:
        _write(chart, str(beside), found)


def _write(chart: Any, to: str | StringIO, kind: str) -> None:
    import altair

    clean = type(chart).from_dict(described(chart), validate=False)
    with altair.data_transformers.enable("default", max_rows=None):
        clean.save(to, format=kind, **OPTIONS.get(kind, {}))
