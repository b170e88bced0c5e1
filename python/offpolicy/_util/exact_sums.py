"""Sums of floats without any rounding, as fractions: every order gives the same sum, and partial sums add exactly.

A float is an integer of 53 bits times a power of 2. Integers with the same power are added in halves of 26 and 27 bits,
up to 2²⁵ at a time, which f64 does exactly. A product x·y is split into its rounded value and the rounding error
(Dekker, "A floating-point technique for extending the available precision", 1971).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offpolicy._util.arrays import Floats

_AT_ONCE = 1 << 25
_HALF = 27


def exact_sum(x: Floats) -> Fraction:
    """Return Σ x_i of finite floats.

    >>> import numpy as np
    >>> from offpolicy._util.exact_sums import exact_sum
    >>> float(exact_sum(np.array([1e30, 1.0, -1e30])))
    1.0
    """
    total = Fraction(0)
    for start in range(0, len(x), _AT_ONCE):
        mantissa, exponent = np.frexp(x[start : start + _AT_ONCE])
        whole = np.ldexp(mantissa, 53).astype(np.int64)
        least = int(exponent.min())
        upper = np.bincount(exponent - least, weights=whole >> _HALF).tolist()
        lower = np.bincount(exponent - least, weights=whole & ((1 << _HALF) - 1)).tolist()
        halves = enumerate(zip(upper, lower, strict=True))
        integer = sum(((int(high) << _HALF) + int(low)) << power for power, (high, low) in halves)
        total += integer * Fraction(2) ** (least - 53)
    return total


def exact_dot(x: Floats, y: Floats) -> Fraction:
    """Return Σ x_i y_i; products must not come near the ends of the range of f64."""
    product = x * y
    (a, b), (c, d) = _split(x), _split(y)
    rest = b * d - (((product - a * c) - b * c) - a * d)
    return exact_sum(product) + exact_sum(rest)


def sums_by(group: NDArray[Any], x: Floats, groups: int) -> Floats:
    """Return Σ x_i of each group from 0; each sum is rounded at most twice and does not depend on the order.

    >>> import numpy as np
    >>> from offpolicy._util.exact_sums import sums_by
    >>> sums_by(np.array([0, 1, 0, 0]), np.array([1e15, 3.0, 0.3, -1e15]), 2)
    array([0.3, 3. ])
    """
    found = np.zeros(groups)
    for unit, whole in in_units(x, len(x)):
        found += np.bincount(group, whole, groups) * unit
    return found


def in_units(x: Floats, addends: int) -> list[tuple[float, Floats]]:
    """Return x as a sum of whole numbers times powers of 2; `addends` such numbers can be added without rounding.

    The remainder is below 2⁻⁷⁰ of the largest entry for a hundred thousand addends, and below 2⁻⁵⁰ for 2²⁷ of them.
    """
    bits = 52 - math.ceil(math.log2(max(addends, 1)))
    exponent = int(np.frexp(np.abs(x).max(initial=0.0))[1])
    found, rest = [], x
    for power in (exponent - bits, exponent - 2 * bits):
        unit = math.ldexp(1.0, max(power, -1074))
        whole = np.rint(rest / unit)
        found.append((unit, whole))
        rest = rest - whole * unit
    return found


def _split(x: Floats) -> tuple[Floats, Floats]:
    """Split x into two floats of half the length that add up to it (Veltkamp)."""
    scaled = 134217729.0 * x  # 2²⁷ + 1
    high = scaled - (scaled - x)
    return high, x - high
