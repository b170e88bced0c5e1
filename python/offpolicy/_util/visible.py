"""Text on its way out: nothing that a terminal would obey, and no line that only a name in a log has made."""

from __future__ import annotations


def visible(text: str) -> str:
    r"""Return text in one line, with control characters and lone surrogates written out; names in a log may hold any.

    >>> print(visible("a\x1b[31m\nb"))
    a\x1b[31m\nb
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def visible_lines(text: str) -> str:
    r"""Return text whose lines are our own, each of them as `visible` shows it.

    >>> print(visible_lines("two problems\n  a\x00b"))
    two problems
      a\x00b
    """
    return "\n".join(map(visible, text.split("\n")))
