"""Arrays of floats or of Fractions, and errors that name the index of a bad entry."""

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

#: The first axes of an array; an array that does not depend on the step begins with the state.
AXES = ("step", "state", "action")


def in_fractions(**named: ArrayLike | Fraction) -> bool:
    """Return whether any of the values is a Fraction or an array of Fractions."""
    return any(_numbers(values, name).dtype == object for name, values in named.items())


def as_array(values: ArrayLike | Fraction, exact: bool, name: str) -> Array:
    """Convert to an array of floats, or of Fractions if `exact`; a float becomes the Fraction equal to it."""
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
    """Return the rows along the last axis, divided by their sum where it differs from 1 by rounding only.

    Raise an error for the first row that has a negative entry or does not add to 1.
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
    """Return Σ p (x - Σ p x)²."""
    return probabilities @ (values - probabilities @ values) ** 2


def number(result: Any, exact: bool) -> Number:
    """Return a plain float or Fraction; raise an error if a float is not finite."""
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
    """Describe an index by the names of the axes, or by its numbers if there are no names."""
    if not index:
        return ""
    if len(axes) != len(index):
        return f" at index {_plain(index)}"
    return " of " + ", ".join(f"{axis} {i}" for axis, i in zip(axes, index, strict=True))


def _plain(index: Sequence[Any]) -> tuple[int, ...]:
    return tuple(int(i) for i in index)
