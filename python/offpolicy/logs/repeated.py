"""The ids of episodes that are in a log more than once.

The core keeps only a hash of an id that is a text. The hash finds an id that comes again, but the text of the id must
be read from the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from offpolicy._util import polars_calls
from offpolicy.logs.sources import Source

_ROW = "__offpolicy_row__"


def name_repeated(found: Sequence[dict[str, Any]], source: Source, column: str) -> list[dict[str, Any]]:
    """Fill in the ids of repeated episodes that the core could not name, and return the problems.

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
        except pl.exceptions.PolarsError:  # Polars may refuse a file that our reader takes
            continue
        for problem in here:
            if problem["place"]["row"] in names:
                problem["episode"] = {"Text": names[problem["place"]["row"]]}
    return list(found)
