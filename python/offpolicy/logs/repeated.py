"""The ids of episodes that are in a log more than once, read where they stand.

The core keeps a hash of an id that is a text, which finds the one that comes again; what it says is read from the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from offpolicy._util import polars_calls
from offpolicy.logs.sources import Source

_ROW = "__offpolicy_row__"


def name_repeated(found: Sequence[dict[str, Any]], source: Source, column: str) -> list[dict[str, Any]]:
    """Return the problems as the core writes them, with the ids of repeated episodes that it could not name.

    >>> import polars as pl
    >>> from offpolicy.logs.sources import FrameSource
    >>> problem = {"kind": "reappears", "episode": None, "place": {"source": 0, "row": 1}}
    >>> name_repeated([problem], FrameSource(pl.DataFrame({"user": ["ann", "bob"]})), "user")[0]["episode"]
    {'Text': 'bob'}
    """
    nameless = [problem for problem in found if problem["kind"] == "reappears" and problem["episode"] is None]
    pieces = source.pieces() if nameless else []
    for number in {problem["place"]["source"] for problem in nameless}:
        here = [problem for problem in nameless if problem["place"]["source"] == number]
        rows = [problem["place"]["row"] for problem in here]
        ids = pieces[number].select(polars_calls.column(column)).with_row_index(_ROW).filter(pl.col(_ROW).is_in(rows))
        try:
            names = dict(ids.collect(engine="streaming").iter_rows())
        except pl.exceptions.PolarsError:  # its reader is stricter than ours
            continue
        for problem in here:
            if problem["place"]["row"] in names:
                problem["episode"] = {"Text": names[problem["place"]["row"]]}
    return list(found)
