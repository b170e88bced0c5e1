"""The errors that the package raises on purpose; each says what was found, what was expected and how to go on.

`offpolicy.errors.kinds` declares one object for each kind of error. An error keeps its kind and the parameters of its
message, so that the message can be written in the words of Python or of the command line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

from offpolicy._util.phrase import Phrase, Words, in_words
from offpolicy._util.visible import visible, visible_lines
from offpolicy._util.words import CHECK_LISTS
from offpolicy.logs.problem import Problem, ProblemKind, kinds_of

#: How many problems of one batch of rows are reported.
SHOWN = 20


class OffPolicyError(ValueError):
    """The base class of all errors of this package.

    >>> import offpolicy as op
    >>> issubclass(op.BadLogError, op.OffPolicyError) and issubclass(op.OffPolicyError, ValueError)
    True
    """

    #: The id of the kind of error, which is a heading of the error index; None if a plugin raised a text of its own.
    kind: str | None = None
    #: What to do about it, in a sentence; empty if the kind is not known.
    remedy: str = ""

    @classmethod
    def of(cls, kind: str, message: Phrase, remedy: Phrase) -> Self:
        """Make an error of one of the kinds of `offpolicy.errors.kinds`."""
        error = cls.__new__(cls, message)
        error.kind, error.remedy = kind, remedy
        return error

    @property
    def message(self) -> str:
        """The message, as a `Phrase` with parameters if the kind is known, otherwise as plain text."""
        return self.args[0] if len(self.args) == 1 and isinstance(self.args[0], str) else str(self)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the message by name; empty if the kind is not known."""
        message = self.args[0] if self.args else None
        return dict(message.parameters) if isinstance(message, Phrase) else {}

    def in_words(self, words: Words) -> str:
        """Return the message in the words of Python or of the command line, with control characters escaped."""
        message = self.args[0] if len(self.args) == 1 else super().__str__()
        return visible_lines(in_words(message, words) if isinstance(message, str) else str(message))

    def __str__(self) -> str:
        """Return the message in the words of Python."""
        return self.in_words("python")

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to restore the error in another process, whatever arguments its constructor takes."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(cls: type[OffPolicyError], arguments: tuple[Any, ...], state: dict[str, Any]) -> OffPolicyError:
    error = cls.__new__(cls, *arguments)
    error.__dict__.update(state)
    return error


class UsageError(OffPolicyError):
    """An argument that is not valid.

    >>> import offpolicy as op
    >>> op.evaluate(op.demo_log(episodes=5), discount=2)
    Traceback (most recent call last):
        ...
    offpolicy.errors.UsageError: discount must be between 0 and 1, not 2
    """


class MissingBoundError(UsageError):
    """A bound that was not given and on which an estimator's range depends.

    >>> import offpolicy as op
    >>> ev = op.evaluate(op.demo_log(episodes=50), estimators=["step-is"], horizon=20, interval="betting")
    >>> ev["step-is"].interval(bounds=op.Bounds(reward=(-9, 9)), method="hoeffding").reason
    'bounds: give ratio=, the largest possible π1/π0'
    """


class MissingColumnError(OffPolicyError):
    """A column that is needed and that the log lacks.

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

    kind = "unreadable-file"
    file: str

    def __init__(self, file: str, why: str) -> None:
        """Make the error from the name of the file and the reason why it cannot be read."""
        self.file = file
        super().__init__(visible(f"{file}: {why}"))

    @classmethod
    def of(cls, kind: str, message: Phrase, remedy: Phrase) -> Self:
        """Make an error of a kind whose message begins with the file."""
        error = super().of(kind, message, remedy)
        error.file = str(message.parameters["file"])
        return error

    def in_words(self, words: Words) -> str:
        """Return the message in one line, whatever characters the name of the file has."""
        return visible(super().in_words(words))

    def renamed(self, file: str, message: str) -> BadFileError:
        """Return the same error with another name of the file, with which the message begins."""
        error = type(self)(file, message.removeprefix(f"{file}: "))
        error.kind, error.remedy = self.kind, self.remedy
        return error


class UnreadableError(OffPolicyError):
    """A stream that broke off while it was read."""

    kind = "broken-stream"


class ChangedLogError(BadFileError):
    """A log that changed between two readings, so that their numbers do not belong together; `file` names it."""

    kind = "changed-log"
    template = (
        "{file}: the log changed while it was evaluated: {why}; what was read before and after does not belong "
        "together: "
        "evaluate the log again, or a copy that nothing writes to"
    )

    def __init__(self, file: str, why: str) -> None:
        """Make the error from the name of the file, or of the kind of log if it has none, and what differs."""
        super().__init__(file, self.template.format(file="", why=why).removeprefix(": "))


class StateError(OffPolicyError):
    """A state from another process that is damaged, or belongs to another version, plan, pass or log."""

    kind = "foreign-state"


class InternalError(OffPolicyError):
    """A fault of this package, which no log or argument should be able to cause."""

    kind = "internal"


class MemoryLimitError(OffPolicyError):
    """A log that needs more memory than is allowed: `needed` and `limit` in bytes, for its `steps` and `episodes`.

    >>> import offpolicy as op
    >>> op.evaluate(op.demo_log(episodes=5), memory="1kB")
    Traceback (most recent call last):
        ...
    offpolicy.errors.MemoryLimitError: ... of memory are needed, and memory= allows 1 kB: ...
    """

    needed: int
    limit: int
    steps: int
    episodes: int


class TooLargeError(OffPolicyError):
    """A number that no f64 can hold."""


class UnknownTransitionsError(OffPolicyError):
    """A transition probability P(s'|s, a) that a domain or a model does not know, with the reason."""

    kind = "transitions-not-told"


class PluginError(OffPolicyError):
    """A plugin that is not installed, is broken, or returns something invalid.

    >>> import offpolicy as op
    >>> op.domain("no-such-domain")
    Traceback (most recent call last):
        ...
    offpolicy.errors.PluginError: no domain 'no-such-domain'; ...
    """


class BadLogError(OffPolicyError):
    """A log with wrong rows; `problems` has the first problems, and `kinds` a summary of each kind.

    >>> import offpolicy as op, polars as pl
    >>> log = op.demo_log(episodes=5).with_columns(behavior_prob=pl.lit(0.0))
    >>> try:
    ...     op.evaluate(log)
    ... except op.BadLogError as error:
    ...     print(error.problems[0].kind, error.problems[0].column, error.problems[0].episode)
    not-positive behavior_prob 0
    """

    kind = "bad-log"
    remedy = "Mend the rows that the message names; each kind of problem says how."

    def __init__(
        self, problems: Sequence[Problem], found: int | None = None, kinds: Sequence[ProblemKind] | None = None
    ) -> None:
        """Collect problems; `found` is how many there are in all, and `kinds` summarises each kind."""
        self.problems = list(problems)
        self.found = len(self.problems) if found is None else found
        self.kinds = tuple(kinds_of(self.problems) if kinds is None else kinds)
        self._counted = kinds is not None
        super().__init__("\n".join(self._lines("python")))

    def in_words(self, words: Words) -> str:
        """Return how many problems there are, and the first of each kind with its remedy."""
        return visible_lines("\n".join(self._lines(words)))

    def _lines(self, words: Words) -> Iterator[str]:
        yield f"the log has {self.found:,} problem{'' if self.found == 1 else 's'}"
        for kind in self.kinds:
            yield from kind.lines(words)
        if (more := self.found - sum(kind.problems for kind in self.kinds)) > 0:
            yield f"  … and {more:,} more"
        elif self._counted and self.found > sum(len(kind.examples) for kind in self.kinds):
            yield f"  {in_words(CHECK_LISTS, words)}"
