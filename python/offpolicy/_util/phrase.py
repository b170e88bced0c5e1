"""Sentences kept as data, so that they can be written with the spellings of Python or of the command line.

A `Word` is something that the user types, with both of its spellings. A `Phrase` is a template with parameters. As a
string it has the spellings of Python, and `in_words` gives the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

#: The interface whose spellings a sentence has.
Words = Literal["python", "cli"]


@dataclass(frozen=True)
class Word:
    """Something that the user types, as it is spelled in Python and on the command line.

    >>> str(Word("horizon=", "--horizon"))
    'horizon='
    """

    python: str
    cli: str

    def __str__(self) -> str:
        """Return the spelling in Python."""
        return self.python


class Phrase(str):
    """A text with the spellings of Python that keeps its template and parameters.

    >>> needed = Phrase("the interval needs {what}", {"what": Word("horizon=", "--horizon")})
    >>> needed
    'the interval needs horizon='
    >>> in_words(needed, "cli")
    'the interval needs --horizon'
    """

    template: str
    parameters: dict[str, Any]

    def __new__(cls, template: str, parameters: Mapping[str, Any]) -> Phrase:
        """Fill in the template; parameters of types that other processes may not have are kept as text."""
        kept = {name: _kept(value) for name, value in parameters.items()}
        self = super().__new__(cls, _filled(template, kept, "python"))
        self.template, self.parameters = template, kept
        return self

    def __getnewargs__(self) -> tuple[str, dict[str, Any]]:  # type: ignore[override]
        """Return the arguments from which a copy or another process makes the same phrase."""
        return self.template, self.parameters


def phrase(template: str, **parameters: Any) -> Phrase:
    """Return a sentence with its parameters filled in."""
    return Phrase(template, parameters)


def in_words(text: str, words: Words) -> str:
    """Return a text with the spellings of an interface; a text that is not a phrase stays as it is."""
    return _filled(text.template, text.parameters, words) if isinstance(text, Phrase) else text


def joined(separator: str, texts: Iterable[str]) -> Phrase:
    """Return one phrase of several texts.

    >>> joined(" and ", ["a", phrase("b")])
    'a and b'
    """
    named = {f"part_{index}": text for index, text in enumerate(texts)}
    return Phrase(separator.join(f"{{{name}}}" for name in named), named)


def _filled(template: str, parameters: Mapping[str, Any], words: Words) -> str:
    return template.format_map({name: _spelled(value, words) for name, value in parameters.items()})


def _spelled(value: Any, words: Words) -> str:
    if isinstance(value, Word):
        return value.cli if words == "cli" else value.python
    return in_words(value, words) if isinstance(value, str) else str(value)


def _kept(value: Any) -> Any:
    """Return a parameter in a form that any process can read."""
    return value if isinstance(value, Word | Phrase) or type(value) in (int, float, str) else str(value)
