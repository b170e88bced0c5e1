"""One thing that is wrong with a log, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from offpolicy.visible import visible


@dataclass(frozen=True)
class Problem:
    """What is wrong, where it is, and what to do about it.

    >>> import offpolicy as op
    >>> print(op.Problem("nan", "a.parquet", 7, 3, 2, "reward", "NaN", "NaN is not a value"))
    a.parquet, row 7, episode 3, step 2: reward = NaN: NaN is not a value [nan]
    """

    kind: str
    file: str | None
    row: int | None
    episode: int | str | None
    step: int | None
    column: str | None
    value: str | None
    message: str

    def __str__(self) -> str:
        """Where first, then what, in one line."""
        named = {"row": self.row, "episode": self.episode, "step": self.step}
        where = [self.file] if self.file else []
        where += [f"{name} {value}" for name, value in named.items() if value is not None]
        found = f"{self.column} = {self.value}: " if self.column is not None else ""
        return visible(f"{', '.join(where) or 'the log'}: {found}{self.message} [{self.kind}]")


#: How the core says that it does not know the row.
NO_ROW = 2**64 - 1
EMPTY = Problem("empty", None, None, None, None, None, None, "there is no row in it")


def from_core(document: dict[str, Any], sources: Sequence[str], rows: bool) -> Problem:
    """Reads a problem as the core writes it; without `rows` where they are not those of the user's log."""
    place, episode = document["place"], document["episode"]
    return Problem(
        kind=document["kind"],
        file=sources[place["source"]] if place else None,
        row=place["row"] if place and rows and place["row"] != NO_ROW else None,
        episode=None if episode is None else next(iter(episode.values())),
        step=document["step"],
        column=document["column"],
        value=document["value"],
        message=document["message"],
    )
