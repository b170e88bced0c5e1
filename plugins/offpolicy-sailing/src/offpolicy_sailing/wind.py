"""Directions, the cost of sailing in each of them, and the turns of the wind.

Directions 0, …, 7 are N, NE, E, SE, S, SW, W, NW. The wind is the direction that it blows toward. With d the angle
between heading a and wind w in units of 45°,

    cost = (1, 2, 3, 4)[d] · (√2 if a is diagonal) + 3 if the boat tacks

The boat tacks if the wind comes from one side with the previous heading and from the other side with the new one.
d = 4, against the wind, is forbidden.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

NAMES = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")
DIRECTIONS = 8
DX = np.array([0, 1, 1, 1, 0, -1, -1, -1])
DY = np.array([1, 1, 0, -1, -1, -1, 0, 1])
#: The angle of a heading against the wind, which is forbidden.
AGAINST = 4
TACK = 3.0
#: The largest cost of a step: a tack on a diagonal heading with d = 3.
WORST = 3 + 4 * math.sqrt(2)

#: P(next wind | wind) with one row per wind and one column per next wind.
TURNS = np.array(
    [
        [0.4, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0, 0.3],
        [0.4, 0.3, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.4, 0.3, 0.3, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.4, 0.3, 0.3, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.4, 0.2, 0.4, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.3, 0.3, 0.4, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.3, 0.3, 0.4],
        [0.4, 0.0, 0.0, 0.0, 0.0, 0.0, 0.3, 0.3],
    ]
)

Whole = NDArray[Any]


def angle(heading: Whole, wind: Whole) -> Whole:
    """Return the angle d, from 0 with the wind to 4 against it."""
    turn = (heading - wind) % DIRECTIONS
    angles: Whole = np.minimum(turn, DIRECTIONS - turn)
    return angles


def side(heading: Whole, wind: Whole) -> Whole:
    """Return the side of the heading on which the wind blows, +1 or -1, or 0 straight from ahead or behind."""
    turn = (wind - heading) % DIRECTIONS
    sides: Whole = np.select([(turn >= 1) & (turn <= 3), turn >= 5], [1, -1], 0)
    return sides


def cost(previous: Whole, wind: Whole, heading: Whole) -> NDArray[np.float64]:
    """Return the cost of one step, which is meaningless for a forbidden heading."""
    length = np.where(heading % 2 == 1, math.sqrt(2), 1.0)
    tacks = side(previous, wind) * side(heading, wind) == -1
    costs: NDArray[np.float64] = (1.0 + angle(heading, wind)) * length + TACK * tacks
    return costs
