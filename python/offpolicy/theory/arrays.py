"""Arrays of floats, or of Fractions; and where in them something is wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from offpolicy._util.probabilities import ROUNDING, TOLERANCE
from offpolicy.errors.kinds.of_arguments import bad_value
from offpolicy.errors.kinds.of_theory import bad_array, beyond_range, not_probabilities

Array: TypeAlias = NDArray[Any]
Number: TypeAlias = float | Fraction

#: The first axes of an array; one that does not depend on the step begins with the state.
AXES = ("step", "state", "action")


def in_fractions(**named: ArrayLike | Fraction) -> bool:
    """True if any of the values is a Fraction, or an array of them."""
    return any(_numbers(values, name).dtype == object for name, values in named.items())


def as_array(values: ArrayLike | Fraction, exact: bool, name: str) -> Array:
    """Floats, or Fractions; a float becomes the rational number that it is."""
    array = _numbers(values, name)
    try:
        numbers = np.array(np.frompyfunc(Fraction, 1, 1)(array)) if exact else array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise bad_array(name=name, expected=f"hold finite numbers: {error}") from None
    if not exact and not np.isfinite(numbers).all():
        index = tuple(np.argwhere(~np.isfinite(numbers))[0])
        raise bad_value(name=name, expected="finite", found=f"{numbers[index]} at index {_plain(index)}")
    return numbers


def as_probabilities(rows: Array, name: str, axes: Sequence[str] = ()) -> Array:
    """Return the rows along the last axis, divided by their sum where that misses 1 by rounding alone.

    Refuses the first row that is negative somewhere or does not add to 1.
    """
    negative = np.asarray((rows < 0).any(axis=-1))
    total = rows.sum(axis=-1, keepdims=True)
    away = np.abs(total - 1)
    unfair = np.asarray(away > ROUNDING)[..., 0]
    for index in map(tuple, np.argwhere(negative | unfair)[:1]):
        at, row = _place(index, axes), rows[index]
        if negative[index]:
            raise not_probabilities(name=name, at=at, fault=f"have {float(row.min()):.6g}; each must be from 0 to 1")
        raise not_probabilities(name=name, at=at, fault=f"add to {float(row.sum()):.9g}, not 1")
    put_right: Array = np.where(away > TOLERANCE, rows / total, rows)
    return put_right


def variance(probabilities: Array, values: Array) -> Any:
    """Σ p (x - Σ p x)²."""
    return probabilities @ (values - probabilities @ values) ** 2


def number(result: Any, exact: bool) -> Number:
    """A plain float or Fraction; what no float holds is refused."""
    if exact:
        return Fraction(result)
    if not math.isfinite(result):
        raise beyond_range()
    return float(result)


def _numbers(values: ArrayLike | Fraction, name: str) -> Array:
    try:
        array = np.asarray(values)
    except ValueError:
        raise bad_array(name=name, expected="be an array of numbers, and not rows of different lengths") from None
    if array.dtype.kind not in "biufO":
        raise bad_array(name=name, expected=f"hold numbers, not {array.dtype}")
    return array


def _place(index: Sequence[Any], axes: Sequence[str]) -> str:
    """By the names of the axes, or by the bare index where they have none."""
    if not index:
        return ""
    if len(axes) != len(index):
        return f" at index {_plain(index)}"
    return " of " + ", ".join(f"{axis} {i}" for axis, i in zip(axes, index, strict=True))


def _plain(index: Sequence[Any]) -> tuple[int, ...]:
    return tuple(int(i) for i in index)
