"""What is drawn of an evaluation, in plain values: a picture knows nothing of how they were computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True)
class JudgedTable:
    """A table of estimates with the verdict on each row, and the verdict on the whole.

    The table has the columns `policy`, `estimator`, `value`, `low` and `high`, and may have others.
    """

    table: pl.DataFrame
    levels: Sequence[str | None]  # one per row: reliable, fragile or unusable; None if the value was observed
    level: str
    rule: str
    advice: str
    episodes: int
    confidence: float
