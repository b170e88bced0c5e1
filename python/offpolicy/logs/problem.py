"""A problem of a log with its place, and the summary of all problems of one kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from offpolicy import _core
from offpolicy._util.phrase import Words, in_words, joined
from offpolicy._util.visible import visible
from offpolicy.logs.remedies import Done, remedy

#: How many problems of each kind a message shows.
EXAMPLES = 5


@dataclass(frozen=True)
class Problem:
    """One problem of a log: what is wrong, where it is, and what to do about it.

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
        """Return the place and then the problem, in one line."""
        return self.line("python")

    def line(self, words: Words) -> str:
        """Return the problem in one line, in the words of Python or of the command line."""
        found = f"{self.found}: " if self.found else ""
        return visible(f"{self.where}: {found}{in_words(self.message, words)} [{self.kind}]")

    @property
    def where(self) -> str:
        """The file, row, episode and step, as far as they are known."""
        named = {"row": self.row, "episode": self.episode, "step": self.step}
        where = [self.file] if self.file else []
        where += [f"{name} {value}" for name, value in named.items() if value is not None]
        return visible(", ".join(where)) or "the log"

    @property
    def found(self) -> str:
        """The column and its wrong value."""
        return "" if self.column is None else visible(f"{self.column} = {self.value}")


@dataclass(frozen=True)
class ProblemKind:
    """All problems of one kind: their number, the rows and episodes that have them, and the first few as examples.

    `rows` and `episodes` are None if they were not counted; the shares are None if the size of the log is not known.
    `or_more` says that there may be more episodes than were counted.

    >>> import offpolicy as op, polars as pl
    >>> log = op.demo_log(episodes=4).with_columns(reward=pl.when(pl.col("step") < 2).then(None).otherwise("reward"))
    >>> (kind,) = op.check(log).kinds
    >>> kind.kind, kind.problems, kind.rows, round(kind.rows_share, 2), kind.episodes, kind.episodes_share
    ('null', 8, 8, 0.21, 4, 1.0)
    """

    kind: str
    message: str
    problems: int
    rows: int | None
    rows_share: float | None
    episodes: int | None
    episodes_share: float | None
    or_more: bool
    examples: tuple[Problem, ...]

    def __str__(self) -> str:
        """Say how many problems there are, in how much of the log, and what to do about them."""
        return self.line("python")

    def line(self, words: Words) -> str:
        """Return the text of `__str__` in the words of Python or of the command line."""
        problems = f"{self.problems:,} problem{'' if self.problems == 1 else 's'}"
        return f"{problems}{self.extent}: {in_words(self.message, words)} [{self.kind}]"

    @property
    def extent(self) -> str:
        """The numbers and shares of rows and episodes with such a problem, in words."""
        parts = []
        if self.rows is not None:
            parts.append(counted(self.rows, "row", self.rows_share))
        if self.episodes is not None:
            parts.append(counted(self.episodes, "episode", self.episodes_share, " or more" if self.or_more else ""))
        return f" in {' and '.join(parts)}" if parts else ""

    def lines(self, words: Words = "python") -> Iterator[str]:
        """Yield a line on the kind, one per example, and one on how many are left; a single problem takes one line."""
        if self.problems == 1 and self.examples:
            yield f"  {self.examples[0].line(words)}"
            return
        yield f"  {self.line(words)}"
        for problem in self.examples:
            yield f"    {problem.where}" + (f": {problem.found}" if problem.found else "")
        if (more := self.problems - len(self.examples)) > 0:
            yield f"    … and {more:,} more"


def counted(number: int, noun: str, share: float | None, more: str = "") -> str:
    """Return a number with its noun and its share in percent.

    >>> counted(1, "row", 0.00001), counted(1200, "episode", 0.25, " or more")
    ('1 row (under 0.1%)', '1,200 or more episodes (25.0%)')
    """
    percent = "" if share is None else " (under 0.1%)" if 0 < share < 0.001 else f" ({share:.1%})"
    return f"{number:,}{more} {noun}{'' if number == 1 else 's'}{percent}"


EMPTY = Problem("empty", None, None, None, None, None, None, "there is no row in it")


def from_core(
    found: _core.FoundProblem, episode: int | str | None, sources: Sequence[str], rows: bool, done: Done
) -> Problem:
    """Return a problem of an episode in the user's terms; `rows` is false if its row is not one of the user's log."""
    return Problem(
        kind=found.kind,
        file=None if found.source is None else sources[found.source],
        row=found.row if rows else None,
        episode=episode,
        step=found.step,
        column=found.column,
        value=found.value,
        message=full(found.message, found.kind, done),
    )


def full(message: str, kind: str, done: Done) -> str:
    """Return the message with the remedy that is left after what was already done."""
    how = remedy(kind, done)
    return joined("; ", [message, how]) if how else message


def kinds_of(problems: Sequence[Problem]) -> tuple[ProblemKind, ...]:
    """Group problems by kind and message, in the order of first appearance; rows and episodes stay uncounted."""
    found: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        found.setdefault((problem.kind, problem.message), []).append(problem)
    return tuple(
        ProblemKind(kind, message, len(own), None, None, None, None, False, tuple(own[:EXAMPLES]))
        for (kind, message), own in found.items()
    )
