"""Episodes that are spread over several files, such as sessions across midnight in files of one day each.

The first reading of the log finds their ids when it meets their later parts. The next reading, which knows the ids,
joins the parts.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True)
class Crossing:
    """The ids of the episodes that cross files, and the number of every episode's first step."""

    ids: tuple[int | str, ...] = ()
    first_step: int | None = None

    def among(self, ids: pl.Series) -> pl.Series:
        """Return for each of these ids whether its episode crosses files.

        >>> Crossing((7, 9)).among(pl.Series([6, 7, 8])).to_list()
        [False, True, False]
        """
        if not self.ids:
            return pl.repeat(False, len(ids), eager=True)
        return ids.is_in(pl.Series(self.ids).cast(ids.dtype).implode())
