"""Episodes that cross files at any place in them, such as sessions over midnight in files of one day each.

A reading finds that there are some when it meets their later pieces; the next one, which knows their ids, joins them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import polars as pl


@dataclass(frozen=True)
class Crossing:
    """What a reading must know of them: their ids as the core writes them, and the first step of every episode."""

    crossing: tuple[dict[str, Any], ...] = ()
    first_step: int | None = None

    @classmethod
    def from_core(cls, document: str) -> Crossing:
        """Return what the core has found.

        >>> Crossing.from_core('{"crossing": [{"Int": 7}], "first_step": null}')
        Crossing(crossing=({'Int': 7},), first_step=None)
        """
        found = json.loads(document)
        return cls(tuple(found["crossing"]), found["first_step"])

    def among(self, ids: pl.Series) -> pl.Series:
        """Return which of these ids are of episodes that cross files.

        >>> Crossing(({"Int": 7}, {"Int": 9})).among(pl.Series([6, 7, 8])).to_list()
        [False, True, False]
        """
        own = [next(iter(each.values())) for each in self.crossing]
        return ids.is_in(pl.Series(own).cast(ids.dtype).implode()) if own else pl.repeat(False, len(ids), eager=True)
