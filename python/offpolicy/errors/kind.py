"""The class of kinds of errors; a kind has a message, its meaning and a remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Any, Generic, TypeVar

from offpolicy._util.phrase import Phrase, Word
from offpolicy.errors import OffPolicyError

E = TypeVar("E", bound=OffPolicyError)


@dataclass(frozen=True, eq=False)
class Kind(Generic[E]):
    """A kind of error; calling it with the parameters of its message makes an error of its class.

    `id` is a name that never changes, and a heading of the error index. `words` are parameters that are the same in
    every message. `example` has values of the other parameters, for the error index.

    >>> from offpolicy.errors.kinds.of_arguments import bad_value
    >>> error = bad_value(name="discount", expected="between 0 and 1", found=2)
    >>> error.kind, str(error)
    ('bad-value', 'discount must be between 0 and 1, not 2')
    >>> error.parameters["found"]
    2
    """

    id: str
    error: type[E]
    message: str
    meaning: str
    remedy: str
    example: Mapping[str, Any] = field(default_factory=dict)
    words: Mapping[str, Word] = field(default_factory=dict)

    def __call__(self, **parameters: Any) -> E:
        """Return an error of this kind, to be raised."""
        return self.error.of(self.id, *self.rendered(**parameters))

    def rendered(self, **parameters: Any) -> tuple[Phrase, Phrase]:
        """Return the message and the remedy with these parameters."""
        parameters = {**self.words, **parameters}
        return Phrase(self.message, parameters), Phrase(self.remedy, parameters)

    @property
    def fields(self) -> set[str]:
        """The names of the parameters that a call must give."""
        return {name for _, name, _, _ in Formatter().parse(self.message) if name} - set(self.words)


def declared(module: Mapping[str, Any]) -> Iterator[Kind[Any]]:
    """Yield the kinds that a module declares, in the order of their declaration."""
    yield from (value for value in module.values() if isinstance(value, Kind))
