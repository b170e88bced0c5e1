"""What was put right while a log was annotated, kept as long as the log lives: a Polars frame has no room for notes."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any, TypeVar

import polars as pl

from offpolicy._util.probabilities import Tally

Log = TypeVar("Log", pl.DataFrame, pl.LazyFrame)

_tallies: dict[int, tuple[Tally, ...]] = {}


def remember(log: Log, *tallies: Tally) -> Log:
    """Return the same log; `tallies_of` finds these for it.

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
    """Return what was counted while this log was annotated, or is counted whenever it is read."""
    return _tallies.get(id(log), ())


@dataclass(frozen=True)
class Counting:
    """The tallies of a log that is about to be read: a lazy one counts its rows again each time."""

    tallies: tuple[tuple[Tally, int], ...]

    @classmethod
    def of(cls, log: Any) -> Counting:
        """Begin to count."""
        lazy = isinstance(log, pl.LazyFrame)
        return cls(tuple((tally, tally.rows if lazy else 0) for tally in tallies_of(log)))

    @property
    def rows(self) -> int:
        """The rows that were divided by their sum since then."""
        return sum(tally.rows - before for tally, before in self.tallies)
