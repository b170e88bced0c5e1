"""Look-ups of values that a model made together and stores side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from offpolicy.protocols import Question

#: The roles that can be looked up for several policies at once.
TOGETHER = frozenset({"q_hat", "v_hat"})


def questions_together(questions: Sequence[Question]) -> int:
    """Return how many of the first questions ask for just Q̂ and V̂ of values that are stored side by side."""
    together = 1
    for before, after in pairwise(questions):
        beside = getattr(after.values, "is_beside", None)
        if not (before.roles == after.roles == TOGETHER and callable(beside) and beside(before.values)):
            break
        together += 1
    return together
