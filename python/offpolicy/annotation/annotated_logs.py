"""Counts of corrected rows of annotated logs, kept as long as the logs exist.

A Polars frame has no attribute for such notes.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any, TypeVar

import polars as pl

from offpolicy._util.probabilities import Tally

Log = TypeVar("Log", pl.DataFrame, pl.LazyFrame)

_tallies: dict[int, tuple[Tally, ...]] = {}


def remember(log: Log, *tallies: Tally) -> Log:
    """Keep the tallies of a log for `tallies_of`, and return the log.

    >>> import polars as pl
    >>> from offpolicy.annotation.annotated_logs import remember, tallies_of
    >>> from offpolicy._util.probabilities import Tally
    >>> log, tally = pl.DataFrame(), Tally()
    >>> tallies_of(remember(log, tally)) == (tally,)
    True
    """
    if tallies:
        _tallies[id(log)] = tallies
        weakref.finalize(log, _tallies.pop, id(log), None)
    return log


def tallies_of(log: Any) -> tuple[Tally, ...]:
    """Return the tallies of a log, counted when it was annotated or, for a lazy log, each time it is read."""
    return _tallies.get(id(log), ())


@dataclass(frozen=True)
class Counting:
    """The tallies of a log that is about to be read, with their counts so far; reading a lazy log counts again."""

    tallies: tuple[tuple[Tally, int], ...]

    @classmethod
    def of(cls, log: Any) -> Counting:
        """Begin to count for a log."""
        lazy = isinstance(log, pl.LazyFrame)
        return cls(tuple((tally, tally.rows if lazy else 0) for tally in tallies_of(log)))

    @property
    def rows(self) -> int:
        """The number of rows whose probabilities were divided by their sum since counting began."""
        return sum(tally.rows - before for tally, before in self.tallies)
