"""Observations as columns of numbers: a Discrete space is one column, a Box one for each of its entries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offpolicy._util.optional import imported
from offpolicy.errors.kinds.of_simulation import no_columns_of_numbers
from offpolicy.grid import Grid


@dataclass(frozen=True, eq=False)
class Observations:
    """The columns of an observation space; `grid` has its cells if all columns are discrete, and is None otherwise."""

    space: Any
    names: tuple[str, ...]
    grid: Grid | None

    def rows(self, observations: list[Any]) -> NDArray[Any]:
        """Return the (n, columns) states of n observations, as whole numbers if all columns are discrete."""
        dtype = np.float64 if self.grid is None else np.int64
        flat = [
            np.concatenate([np.ravel(part) for part in _parts(observation)])
            if isinstance(observation, dict | tuple)
            else observation
            for observation in observations
        ]
        return np.array(flat, dtype=dtype).reshape(len(flat), len(self.names))


def observations_of(space: Any, who: str) -> Observations:
    """Name the columns of a space: `state`, or `state_0`, `state_1`, …, or `state_<key>`.

    >>> from gymnasium.spaces import Box, Dict, Discrete, Tuple
    >>> observations_of(Box(-1, 1, shape=(2, 2)), "an environment").names
    ('state_0', 'state_1', 'state_2', 'state_3')
    >>> found = observations_of(Dict({"hand": Discrete(5), "dealer": Discrete(3, start=1)}), "cards")
    >>> found.names, found.grid.size, found.rows([{"hand": 4, "dealer": 1}])
    (('state_dealer', 'state_hand'), (3, 5), array([[1, 4]]))
    """
    names: list[str] = []
    sizes: list[int | None] = []
    lows: list[int] = []
    for path, size, low in _leaves(space, (), who):
        names.append("_".join(("state", *path)))
        sizes.append(size)
        lows.append(low)
    whole = [size for size in sizes if size is not None]
    grid = Grid(tuple(whole), tuple(lows)) if len(whole) == len(names) else None
    return Observations(space, tuple(names), grid)


def _leaves(space: Any, path: tuple[str, ...], who: str) -> Iterator[tuple[tuple[str, ...], int | None, int]]:
    """Yield each column's path, its number of values (None if it is not discrete), and the lowest of them."""
    spaces = imported("gymnasium.spaces", extra="gymnasium", to="read observations")
    if isinstance(space, spaces.Discrete):
        yield path, int(space.n), int(space.start)
    elif isinstance(space, spaces.MultiDiscrete):
        for i, (n, start) in enumerate(zip(space.nvec.flat, space.start.flat, strict=True)):
            yield (*path, str(i)), int(n), int(start)
    elif isinstance(space, spaces.MultiBinary):
        for i in range(int(np.prod(space.shape))):
            yield (*path, str(i)), 2, 0
    elif isinstance(space, spaces.Box):
        size = int(np.prod(space.shape))
        for i in range(size):
            yield (path if size == 1 else (*path, str(i))), None, 0
    elif isinstance(space, spaces.Tuple):
        for i, part in enumerate(space.spaces):
            yield from _leaves(part, (*path, str(i)), who)
    elif isinstance(space, spaces.Dict):
        for key in sorted(space.spaces):
            yield from _leaves(space.spaces[key], (*path, str(key)), who)
    else:
        raise no_columns_of_numbers(env=who, space=space)


def _parts(observation: Any) -> Iterator[Any]:
    """Yield the numbers of an observation in the order of the columns."""
    if isinstance(observation, dict):
        for key in sorted(observation):
            yield from _parts(observation[key])
    elif isinstance(observation, tuple):
        for part in observation:
            yield from _parts(part)
    else:
        yield np.asarray(observation)
