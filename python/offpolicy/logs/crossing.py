"""Episodes that cross files at any place in them, such as sessions over midnight in files of one day each.

A reading finds that there are some when it meets their later pieces; the next one, which knows their ids, joins them.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True)
class Crossing:
    """What a reading must know of them: their ids, and the first step of every episode."""

    ids: tuple[int | str, ...] = ()
    first_step: int | None = None

    def among(self, ids: pl.Series) -> pl.Series:
        """Return which of these ids are of episodes that cross files.

        >>> Crossing((7, 9)).among(pl.Series([6, 7, 8])).to_list()
        [False, True, False]
        """
        if not self.ids:
            return pl.repeat(False, len(ids), eager=True)
        return ids.is_in(pl.Series(self.ids).cast(ids.dtype).implode())
