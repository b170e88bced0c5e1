"""Checks of single arguments: numbers of any library are accepted, but truth values and texts are not numbers.

Each function returns the argument as a plain Python object, or raises an error with the argument's name.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from offpolicy._util import words
from offpolicy.errors.kinds.of_arguments import bad_value, not_utf8, wrong_object

Kind = TypeVar("Kind")

#: The number of characters of a wrong argument that are shown.
SHOWN = 80
#: Limits that no machine exceeds.
MOST_THREADS = 1024
MOST_ROWS = 2**31 - 1
#: The longest horizon that may be given; tables are made over it.
LONGEST = 10_000_000


def shown(value: Any) -> str:
    """Return an argument as it is shown in an error, cut if it is long.

    >>> shown("x"), len(shown("x" * 1000))
    ("'x'", 81)
    """
    try:
        text = repr(value)
    except Exception:  # from the object's own repr, or for an int of too many digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def is_number(value: Any) -> bool:
    """Return whether a value is a real number within the range of floats, and not a truth value."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def number(name: str, value: Any, low: float = -math.inf, high: float = math.inf, what: str = "a finite number") -> Any:
    """Return a finite number from `low` to `high` as an int or a float.

    >>> number("discount", 1, 0, 1), number("discount", np.float32(0.5), 0, 1)
    (1, 0.5)
    """
    if not (is_number(value) and low <= value <= high and math.isfinite(value)):
        raise bad_value(name=name, expected=what, found=shown(value))
    return value if type(value) in (int, float) else float(value)


def at_least_0(name: str, value: Any) -> float:
    """Return a finite number that is not below 0."""
    return float(number(name, value, 0, what="at least 0 and finite"))


def above_0(name: str, value: Any) -> float:
    """Return a finite number above 0."""
    return float(number(name, value, math.ulp(0.0), what="above 0 and finite"))


def span(name: str, value: Any) -> tuple[float, float]:
    """Return a lowest and a highest number, which may be infinite.

    >>> span("reward_range", [np.int8(0), 1.5])
    (0.0, 1.5)
    """
    try:
        low, high = value
    except (TypeError, ValueError):
        low, high = None, None
    if not (is_number(low) and is_number(high) and low <= high):
        raise bad_value(name=name, expected="(lowest, highest), two numbers in order", found=shown(value))
    return float(low), float(high)


def as_whole(value: Any) -> int | None:
    """Return a whole number of any library as an int, or None for truth values and anything else.

    >>> as_whole(np.int8(3)), as_whole(True), as_whole(3.0)
    (3, None, None)
    """
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def whole(name: str, value: Any, least: int | None = None, most: str = "", limit: int | None = None) -> int:
    """Return a whole number from `least` to `limit`; `most` names a limit in errors that is not known yet.

    >>> whole("seed", np.int8(3))
    3
    """
    found = as_whole(value)
    if found is None or (least is not None and found < least):
        start = "" if least is None else f" of at least {least}" if not most else f" from {least} to {most}"
        raise bad_value(name=name, expected=f"a whole number{start}", found=shown(value))
    if limit is not None and found > limit:
        raise bad_value(name=name, expected=f"at most {limit:,}", found=shown(value))
    return found


def horizon(value: Any) -> int:
    """Return a number of steps."""
    return whole("horizon", value, 1, limit=LONGEST)


def discount(value: Any) -> Any:
    """Return a discount as an int or a float."""
    return number("discount", value, 0, 1, "between 0 and 1")


def size(name: str, value: Any, limit: int = MOST_ROWS) -> int | None:
    """Return a whole number of at least 1, or None if the value is None."""
    return None if value is None else whole(name, value, 1, limit=limit)


def threads(value: Any) -> int | None:
    """Return a number of threads, or None for all cores."""
    return size("threads", value, MOST_THREADS)


def flag(name: str, value: Any) -> bool:
    """Return a truth value as a bool; NumPy's are accepted too."""
    if not isinstance(value, bool | np.bool_):
        raise bad_value(name=name, expected="one of True, False", found=shown(value))
    return bool(value)


def choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Raise an error unless the value is one of the choices, which are texts or None."""
    if not (value is None or isinstance(value, str)) or value not in choices:
        raise bad_value(name=name, expected=f"one of {', '.join(map(repr, choices))}", found=shown(value))


def text(name: str, value: Any) -> str:
    """Return a text; raise an error if it cannot be encoded as UTF-8."""
    if not isinstance(value, str):
        raise bad_value(name=name, expected="text", found=shown(value))
    try:
        value.encode()
    except UnicodeEncodeError:
        raise not_utf8(name=name, found=shown(value)) from None
    return value


def instance(name: str, value: Any, kind: type[Kind], hint: str) -> Kind:
    """Return an object of this type, or raise an error in which `hint` shows how to make one."""
    if not isinstance(value, kind):
        raise wrong_object(argument=words.argument(name), expected=hint, found=type(value).__name__)
    return value
