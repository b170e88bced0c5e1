"""Text for output, in which names from a log cannot control a terminal or add lines."""

from __future__ import annotations


def visible(text: str) -> str:
    r"""Return text in one line, with control characters and lone surrogates escaped; names in a log may contain any.

    >>> print(visible("a\x1b[31m\nb"))
    a\x1b[31m\nb
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def visible_lines(text: str) -> str:
    r"""Apply `visible` to each line of a text whose line breaks are intended.

    >>> print(visible_lines("two problems\n  a\x00b"))
    two problems
      a\x00b
    """
    return "\n".join(map(visible, text.split("\n")))
