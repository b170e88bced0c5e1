"""Checks of rows of probabilities, with a correction of sums that differ from 1 by rounding only.

A float32 softmax or classifier gives rows that add to 1 only to about 1e-7. Such rows are divided by their sum, and the
notes of the result tell how many there were.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offpolicy._util.arrays import Floats
from offpolicy.errors.kinds.of_simulation import wrong_array, wrong_probability

#: A row of probabilities whose sum is within this distance of 1 stays as it is.
TOLERANCE = 1e-9
#: A row whose sum is within this distance of 1 is divided by its sum; a larger distance is an error.
ROUNDING = 1e-6

_renormalised: ContextVar[list[NDArray[np.bool_]] | None] = ContextVar("renormalised", default=None)


class Tally:
    """The number of rows of probabilities that were divided by their sum while a log was annotated.

    >>> from offpolicy._util.probabilities import Tally
    >>> tally = Tally()
    >>> tally.add(3)
    >>> tally.rows
    3
    """

    def __init__(self) -> None:
        """Begin with 0."""
        self.rows, self._lock = 0, threading.Lock()

    def add(self, rows: int) -> None:
        """Count more rows; any thread may call it."""
        with self._lock:
            self.rows += rows


def renormalised(rows: int) -> list[str]:
    """Return a list with the note for a result, which is empty if no row was changed.

    >>> from offpolicy._util.probabilities import renormalised
    >>> renormalised(3)
    ['3 rows of probabilities missed 1 by rounding (at most 1e-06) and were divided by their sum']
    """
    if not rows:
        return []
    rounding = f"of probabilities missed 1 by rounding (at most {ROUNDING:g})"
    if rows == 1:
        return [f"1 row {rounding} and was divided by its sum"]
    return [f"{rows} rows {rounding} and were divided by their sum"]


@contextmanager
def counted(tally: Tally) -> Iterator[None]:
    """Count the rows that `checked` divides by their sum inside this context, each row once."""
    masks: list[NDArray[np.bool_]] = []
    before = _renormalised.set(masks)
    try:
        yield
    finally:
        _renormalised.reset(before)
        alike = [mask for mask in masks if len(mask) == len(masks[0])]  # a mixture checks the same rows several times
        if alike:
            tally.add(int(np.logical_or.reduce(alike).sum()))


def count(uneven: NDArray[np.bool_]) -> None:
    """Note the rows that were divided by their sum, inside a context of `counted`."""
    masks = _renormalised.get()
    if masks is not None:
        masks.append(uneven)


def checked(probabilities: Any, who: str, rows: int | None = None) -> Floats:
    """Return checked rows of probabilities; rows that add to 1 within 1e-6 are divided by their sum.

    >>> import numpy as np
    >>> from offpolicy._util.probabilities import checked
    >>> float(checked(np.array([[0.1, 0.2, 0.7]], dtype=np.float32), "the policy").sum())
    1.0
    >>> checked(np.array([[0.5, 0.50001]]), "the policy")
    Traceback (most recent call last):
        ...
    offpolicy.errors.OffPolicyError: the policy's probabilities of row 0 add to 1.00001, not 1: they differ by 1e-05...
    """
    pi: Floats = np.asarray(probabilities, dtype=np.float64)
    if pi.ndim != 2 or (rows is not None and len(pi) != rows):
        raise wrong_array(who=who, expected="a row of probabilities a state", found=f"an array of shape {pi.shape}")
    total = pi @ np.ones(pi.shape[1])
    away = np.abs(total - 1)
    if (away <= TOLERANCE).all() and (pi >= 0).all():
        return pi
    fair = (away <= ROUNDING) & (pi >= 0).all(axis=1)
    if not fair.all():
        raise wrong_probability(fault=_fault(pi, total, int(np.argmin(fair)), who))
    uneven = away > TOLERANCE
    count(uneven)
    put_right: Floats = np.where(uneven[:, None], pi / total[:, None], pi)
    return put_right


def _fault(pi: Floats, total: Floats, row: int, who: str) -> str:
    if not np.isfinite(total[row]) or (pi[row] < 0).any():
        return f"{who}'s probabilities of row {row} are {pi[row]}; each must be from 0 to 1"
    return (
        f"{who}'s probabilities of row {row} add to {total[row]:.9g}, not 1: they differ by "
        f"{abs(total[row] - 1):.3g}, and up to {ROUNDING:g} is taken for rounding"
    )
