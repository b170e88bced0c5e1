"""All errors that the package raises on purpose; each says what was found, what was expected and how to go on."""

from __future__ import annotations

from collections.abc import Sequence

from offpolicy.problem import Problem

SHOWN = 20


class OffPolicyError(ValueError):
    """Base of all errors of this package.

    >>> import offpolicy as op
    >>> issubclass(op.BadLogError, op.OffPolicyError) and issubclass(op.OffPolicyError, ValueError)
    True
    """


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
    offpolicy.errors.MissingColumnError: the log has no column 'reward': name it with Columns(reward=...)
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
        super().__init__(f"{file}: {why}")


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
    """A log whose rows cannot be trusted; `problems` has the details.

    >>> import offpolicy as op, polars as pl
    >>> log = op.demo_log(episodes=5).with_columns(behavior_prob=pl.lit(0.0))
    >>> try:
    ...     op.evaluate(log)
    ... except op.BadLogError as error:
    ...     print(error.problems[0].kind, error.problems[0].column, error.problems[0].episode)
    not-positive behavior_prob 0
    """

    def __init__(self, problems: Sequence[Problem], found: int | None = None) -> None:
        """Collects problems; `found` is how many there were in all."""
        self.problems = list(problems)
        self.found = len(self.problems) if found is None else found
        shown = [f"  {problem}" for problem in self.problems[:SHOWN]]
        if self.found > len(shown):
            shown.append(f"  … and {self.found - len(shown)} more; op.check(log) lists them")
        noun = "problem" if self.found == 1 else "problems"
        super().__init__("\n".join([f"the log has {self.found} {noun}", *shown]))
