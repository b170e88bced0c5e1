"""All errors that the package raises on purpose; each says what was found, what was expected and how to go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from offpolicy._util.visible import visible, visible_lines
from offpolicy.logs.problem import Problem, ProblemKind, kinds_of

#: Problems that are told of one batch of rows.
SHOWN = 20


class OffPolicyError(ValueError):
    """Base of all errors of this package.

    >>> import offpolicy as op
    >>> issubclass(op.BadLogError, op.OffPolicyError) and issubclass(op.OffPolicyError, ValueError)
    True
    """

    def __str__(self) -> str:
        """Return the message, in which nothing moves a terminal; what comes from a log has no line of its own in it."""
        return visible_lines(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        """Let an error come back whole from another process, whatever its constructor takes."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(cls: type[OffPolicyError], arguments: tuple[Any, ...], state: dict[str, Any]) -> OffPolicyError:
    error = cls.__new__(cls, *arguments)
    error.__dict__.update(state)
    return error


class UsageError(OffPolicyError):
    """An argument that makes no sense.

    >>> import offpolicy as op
    >>> op.evaluate(op.demo_log(episodes=5), discount=2)
    Traceback (most recent call last):
        ...
    offpolicy.errors.UsageError: discount must be between 0 and 1, not 2
    """


class MissingColumnError(OffPolicyError):
    """A column that is needed and not there.

    >>> import offpolicy as op
    >>> op.evaluate(op.demo_log(episodes=5).drop("reward"))
    Traceback (most recent call last):
        ...
    offpolicy.errors.MissingColumnError: the log has no column 'reward'; its columns are episode, step, ...
    """


class WrongTypeError(OffPolicyError):
    """A column whose values are of another type than is needed.

    >>> import offpolicy as op, polars as pl
    >>> from offpolicy.testing import Walk
    >>> walk = Walk()
    >>> log = walk.simulate(walk.behavior, 5, seed=0).with_columns(pl.format("move {}", "action").alias("action"))
    >>> op.fitter("tabular").fit(log, walk)
    Traceback (most recent call last):
        ...
    offpolicy.errors.WrongTypeError: column 'action' must hold whole numbers, not String: ...
    """


class BadFileError(OffPolicyError):
    """A file that is absent, cut short or not Parquet.

    >>> import offpolicy as op
    >>> op.evaluate("no-such-file.parquet")
    Traceback (most recent call last):
        ...
    offpolicy.errors.BadFileError: no-such-file.parquet: no such file
    """

    def __init__(self, file: str, why: str) -> None:
        """Names the file and why it cannot be read."""
        self.file = file
        super().__init__(visible(f"{file}: {why}"))

    def renamed(self, file: str, message: str) -> BadFileError:
        """Return the same error of a file by another name, which the message begins with."""
        error = type(self).__new__(type(self))
        BadFileError.__init__(error, file, message.removeprefix(f"{file}: "))
        return error


class UnreadableError(OffPolicyError):
    """A stream that broke off while it was read."""


class ChangedLogError(BadFileError):
    """A log that changed between two readings, whose numbers would be of neither; `file` names it."""

    def __init__(self, file: str, why: str) -> None:
        """Names the file, or the kind of log where it has none, and what differs."""
        super().__init__(
            file,
            f"the log changed while it was evaluated: {why}; what was read before and after does not belong together: "
            "evaluate the log again, or a copy that nothing writes to",
        )


class StateError(OffPolicyError):
    """A state from another process that is damaged, or belongs to another version, plan, pass or log."""


class InternalError(OffPolicyError):
    """A fault of this package: nothing that a log or an argument holds should bring it about."""


#: Memory of an episode whose id does not follow the one before.
ID_BYTES = 28


class MemoryLimitError(OffPolicyError):
    """A log that needs more memory than may be taken: `needed` and `limit` in bytes, for its `steps` and `episodes`.

    >>> import offpolicy as op
    >>> op.evaluate(op.demo_log(episodes=5), memory="1kB")
    Traceback (most recent call last):
        ...
    offpolicy.errors.MemoryLimitError: ... of memory are needed, and memory= allows 1 kB: ...
    """

    def __init__(self, needed: int, limit: int, steps: int, episodes: int) -> None:
        """Names what is needed, for how many steps of the longest episode and for how many episodes."""
        self.needed, self.limit, self.steps, self.episodes = needed, limit, steps, episodes
        by_steps = (
            f"sums are kept of each of the {steps:,} steps of the longest episode, for every policy; give a larger "
            "memory=, ask for fewer estimators or policies, for diagnostics=False or threads=1, or cut episodes short: "
            "filter the log to its first steps and give horizon="
        )
        by_episodes = (
            f"the log has {episodes:,} episodes, and those whose ids do not follow each other are kept one by one; "
            "give a larger memory=, a folder for temporary files that has room for them (TMPDIR), or number the "
            "episodes 0, 1, 2, … in the order of the log"
        )
        super().__init__(
            f"about {_size(needed)} of memory are needed, and memory= allows {_size(limit)}: "
            f"{by_episodes if 2 * ID_BYTES * episodes > needed else by_steps}"
        )


def _size(number: int) -> str:
    """Bytes in a unit that is easy to read.

    >>> _size(999), _size(12_345_678)
    ('999 B', '12.3 MB')
    """
    size, units = float(number), ["B", "kB", "MB", "GB", "TB", "PB"]
    while size >= 999.5 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{size:.3g} {units[0]}"


class TooLargeError(OffPolicyError):
    """A number that no f64 can hold."""


class UnknownTransitionsError(OffPolicyError):
    """P(s'|s, a) that a domain or a model cannot tell, with the reason."""


class PluginError(OffPolicyError):
    """A plugin that is not there, is broken, or gives what it must not.

    >>> import offpolicy as op
    >>> op.domain("no-such-domain")
    Traceback (most recent call last):
        ...
    offpolicy.errors.PluginError: no domain 'no-such-domain'; ...
    """


class BadLogError(OffPolicyError):
    """A log whose rows cannot be trusted; `problems` has the first of them, `kinds` how many there are of each kind.

    >>> import offpolicy as op, polars as pl
    >>> log = op.demo_log(episodes=5).with_columns(behavior_prob=pl.lit(0.0))
    >>> try:
    ...     op.evaluate(log)
    ... except op.BadLogError as error:
    ...     print(error.problems[0].kind, error.problems[0].column, error.problems[0].episode)
    not-positive behavior_prob 0
    """

    def __init__(
        self, problems: Sequence[Problem], found: int | None = None, kinds: Sequence[ProblemKind] | None = None
    ) -> None:
        """Collects problems; `found` is how many there were in all, `kinds` what is known of each kind of them."""
        self.problems = list(problems)
        self.found = len(self.problems) if found is None else found
        self.kinds = tuple(kinds_of(self.problems) if kinds is None else kinds)
        noun = "problem" if self.found == 1 else "problems"
        lines = [f"the log has {self.found:,} {noun}", *(line for kind in self.kinds for line in kind.lines())]
        if (more := self.found - sum(kind.problems for kind in self.kinds)) > 0:
            lines.append(f"  … and {more:,} more")
        elif kinds is not None and self.found > sum(len(kind.examples) for kind in kinds):
            lines.append("  op.check(log) lists them")
        super().__init__("\n".join(lines))
