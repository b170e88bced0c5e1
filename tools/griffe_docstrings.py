"""A Griffe extension for the API reference, which shows docstrings as they are meant.

- A paragraph that begins with `>>>` is code wherever it stands, not a quotation.
- Parameters that share a description, `columns, policies`, are listed one by one, each with its own type.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

SHARED = re.compile(r"^(\w+(?:, \w+)+)\n((?:    .*\n?|\n(?=    ))+)", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Changes the docstring of every object when it is loaded."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(one_by_one(obj.docstring.value))


def fenced(docstring: str) -> str:
    """Return the docstring with its examples in fenced blocks.

    >>> fenced("Add.\\n\\n>>> 1 + 1\\n2").splitlines()
    ['Add.', '', '```pycon', '>>> 1 + 1', '2', '```']
    """
    paragraphs = docstring.split("\n\n")
    return "\n\n".join(f"```pycon\n{text.rstrip()}\n```" if text.startswith(">>>") else text for text in paragraphs)


def one_by_one(docstring: str) -> str:
    """Return the docstring with a description for each parameter.

    >>> print(one_by_one("low, high\\n    An end.\\nname\\n    A name.\\n"), end="")
    low
        An end.
    high
        An end.
    name
        A name.
    """

    def repeated(match: re.Match[str]) -> str:
        text = match[2].rstrip("\n") + "\n"
        return "".join(f"{name}\n{text}" for name in match[1].split(", ")) + match[2][len(text) :]

    return SHARED.sub(repeated, docstring)
