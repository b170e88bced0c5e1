"""Features with discrete values that move independently of each other, by counts pooled over time:

    P̂(s'|s, a) = Π_i P̂_i(s'_i | s_i, a),    P̂_i(y|x, a) = count(x, a, y) / count(x, a)

A value that was never seen with an action moves as under all actions together, or stays as it is, depending on
`unseen`. A value that was never seen at all moves like the nearest value that was.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from offpolicy import _core
from offpolicy.errors.kinds.of_logs import empty_log
from offpolicy.protocols import Actions, Floats, States

#: States as the numbers of their features' values, (n, k).
Numbers = NDArray[np.uint32]
#: The moves of a feature: action, number of the value before and after, and count.
Moves: TypeAlias = tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32], Floats]
#: Moves are counted in a table, or sorted if the table would have more than this many entries per move.
DENSE = 4


@dataclass(frozen=True, eq=False)
class Marginals:
    """The tables P̂_i, made by `MoveCounts`; `values[i]` are the values of feature i in order.

    >>> import numpy as np
    >>> from offpolicy.models.fitters.marginals import MoveCounts
    >>> counts = MoveCounts(features=1)
    >>> counts.add(np.array([[0], [0], [0], [0]]), np.array([0, 0, 0, 0]), np.array([[5], [5], [5], [0]]))
    >>> marginals = counts.marginals(actions=1)
    >>> marginals.probability(0, action=0, value=0)
    array([0.25, 0.75])
    """

    values: tuple[Floats, ...]
    spread: Floats  # the standard deviation of each feature, or 1 if it is 0: the unit of distances
    table: _core.Marginals
    moves: tuple[Moves, ...]  # from which the table is made
    seen: tuple[NDArray[np.bool_], ...]  # per feature, which values were seen with which actions, (actions, values)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each feature."""
        return tuple(len(values) for values in self.values)

    def numbers(self, states: States) -> Numbers:
        """Return the value numbers of states; an unseen value has the number of the nearest one."""
        columns = [_nearest_value(values, states[:, i]) for i, values in enumerate(self.values)]
        return np.stack(columns, axis=1).astype(np.uint32)

    def states(self, numbers: Numbers) -> Floats:
        """Return the states of value numbers."""
        return np.stack([values[numbers[:, i]] for i, values in enumerate(self.values)], axis=1)

    def sample(self, states: States, actions: Actions, rng: np.random.Generator) -> Floats:
        """Draw a next state for each state and action."""
        next_numbers = self.table.next(
            self.numbers(states), np.asarray(actions, dtype=np.uint32), rng.random((len(states), len(self.values)))
        )
        return self.states(next_numbers)

    def move_probability(self, states: States, actions: Actions, next_states: States) -> Floats:
        """Return P̂(s'|s, a), n values; it is 0 if a feature of s' has a value that never occurred."""
        before, after = (self.numbers(each).astype(np.int64) for each in (states, next_states))
        found = np.ones(len(states))
        for i, (values, (codes, shares, moved)) in enumerate(zip(self.values, self._shares, strict=True)):
            x, y, size = before[:, i], after[:, i], len(values)
            row = np.asarray(actions, dtype=np.int64) * size + x
            place = np.searchsorted(codes, row * size + y).clip(0, len(codes) - 1)
            share = np.where(codes[place] == row * size + y, shares[place], 0.0)
            found *= np.where(moved[row], share, x == y) * (values[y] == next_states[:, i])
        return found

    @cached_property
    def _shares(self) -> list[tuple[NDArray[np.int64], Floats, NDArray[np.bool_]]]:
        """Per feature, codes (a · size + x) · size + y of moves, their P̂_i(y|x, a), and which (a, x) have moves."""
        found = []
        for size, (a, x, y, count), seen in zip(self.sizes, self.moves, self.seen, strict=True):
            row = a.astype(np.int64) * size + x
            total = np.bincount(row, weights=count, minlength=seen.size)
            order = np.lexsort((y, row))
            found.append(((row * size + y)[order], (count / total[row])[order], total > 0))
        return found

    def is_seen(self, states: States, actions: Actions) -> NDArray[np.bool_]:
        """Return where each feature's own value was seen with the action, so that no other value is substituted."""
        found = np.ones(len(states), dtype=bool)
        numbers = self.numbers(states)
        for i, (values, seen) in enumerate(zip(self.values, self.seen, strict=True)):
            found &= seen[actions, numbers[:, i]] & (values[numbers[:, i]] == states[:, i])
        return found

    def expected(self, feature: int, f: Floats) -> Floats:
        """Return Σ_y P̂_i(y|x, a) f(y), an (actions, values) array."""
        return self.table.expected(feature, f)

    def probability(self, feature: int, action: int, value: float) -> Floats:
        """Return P̂_i(·|value, action) over `values[feature]`."""
        x = int(_nearest_value(self.values[feature], np.array([value]))[0])
        return np.array([self.expected(feature, unit)[action, x] for unit in np.eye(self.sizes[feature])])


class MoveCounts:
    """Counts of moves, summed batch by batch; memory grows with the number of distinct moves."""

    def __init__(self, features: int) -> None:
        """Begin without moves."""
        self.moves: list[list[tuple[Actions, Floats, Floats, Floats]]] = [[] for _ in range(features)]

    def add(self, states: States, actions: Actions, next_states: States) -> None:
        """Count a batch."""
        for i, moves in enumerate(self.moves):
            x, y = states[:, i].astype(float), next_states[:, i].astype(float)
            moves.append(_tally(np.asarray(actions, dtype=np.int64), x, y, np.ones(len(x))))
            if len(moves) == 16:
                moves[:] = [_tally(*_joined(moves))]

    def marginals(self, actions: int, unseen: str = "pool") -> Marginals:
        """Return the tables of all counted moves; an `unseen` value may "pool" the actions or "stay"."""
        if not self.moves or not all(self.moves):
            raise empty_log(what="there is no transition to count: the log is empty, or no next state is known")
        values, spread, tables, seen = [], [], [], []
        for a, x, y, count in (_tally(*_joined(moves)) for moves in self.moves):
            known = np.unique(np.concatenate([x, y]))
            values.append(known)
            mean = np.average(x, weights=count)
            spread.append(np.sqrt(np.average((x - mean) ** 2, weights=count)) or 1.0)
            counted = np.zeros((actions, len(known)), dtype=bool)
            counted[a, np.searchsorted(known, x)] = True
            seen.append(counted)
            if unseen == "pool":
                a, x, y, count = _pooled(a, x, y, count, actions)
            before, after = np.searchsorted(known, x), np.searchsorted(known, y)
            tables.append((a.astype(np.uint32), before.astype(np.uint32), after.astype(np.uint32), count))
        made = _core.Marginals(actions, [len(known) for known in values], tables)
        return Marginals(tuple(values), np.array(spread), made, tuple(tables), tuple(seen))


def _joined(moves: list[tuple[Actions, Floats, Floats, Floats]]) -> tuple[Actions, Floats, Floats, Floats]:
    a, x, y, count = (np.concatenate(parts) for parts in zip(*moves, strict=True))
    return a, x, y, count


def _tally(a: Actions, x: Floats, y: Floats, count: Floats) -> tuple[Actions, Floats, Floats, Floats]:
    """Return each distinct (a, x, y) once, with the sum of its counts."""
    before, after = np.unique(x), np.unique(y)
    code = (a * len(before) + np.searchsorted(before, x)) * len(after) + np.searchsorted(after, y)
    if code.max(initial=0) < DENSE * len(code):
        sums: Floats = np.bincount(code, weights=count).astype(float)
        codes = np.flatnonzero(sums)
        total = sums[codes]
    else:
        codes, index = np.unique(code, return_inverse=True)
        total = np.bincount(index, weights=count, minlength=len(codes)).astype(float)
    rest, y_number = np.divmod(codes, max(len(after), 1))
    a_number, x_number = np.divmod(rest, max(len(before), 1))
    return a_number, before[x_number], after[y_number], total


def _pooled(a: Actions, x: Floats, y: Floats, count: Floats, actions: int) -> tuple[Actions, Floats, Floats, Floats]:
    """Add the moves of all actions together for each action and value without moves."""
    _, any_x, any_y, any_count = _tally(np.zeros_like(a), x, y, count)
    known = np.unique(any_x)
    seen = np.zeros((actions, len(known)), dtype=bool)
    seen[a, np.searchsorted(known, x)] = True
    action, move = np.nonzero(~seen[:, np.searchsorted(known, any_x)])
    return _joined([(a, x, y, count), (action, any_x[move], any_y[move], any_count[move])])


def _nearest_value(values: Floats, x: NDArray[np.number]) -> NDArray[np.intp]:
    above = np.searchsorted(values, x).clip(0, len(values) - 1)
    below = (above - 1).clip(0)
    nearer: NDArray[np.intp] = np.where(np.abs(x - values[below]) < np.abs(values[above] - x), below, above)
    return nearer
