"""States of `map=` whose content was damaged under a checksum that was computed again."""

import random
from functools import cache
from pathlib import Path

from attacks.outcomes import REFUSED, RIGHT, UNSEEN, failure
from offpolicy.logs import tasks
from state_attack import OTHER, TASK_ROWS, attack
from state_attack import RIGHT as SAME

TRIED = 24_000
ATTACKED = "forged states, checksums recomputed"
SURVIVING = (
    "The state is refused, or the numbers are those without the forgery; or a number in the state was replaced by "
    "another plausible one under a checksum that matches, which nothing can tell from an honest state."
)


@cache
def others() -> list[bytes]:
    """Return states of other evaluations, of which parts are put into those that are forged."""
    found: list[bytes] = []
    rng = random.Random("others")
    for _ in range(40):
        attack(rng, found)
    return found


def case(number: int, folder: Path) -> str:
    """Evaluate once with one forged state among those of a pass."""
    tasks.TASK_ROWS = TASK_ROWS
    try:
        found = attack(random.Random(number), list(others()))
    except BaseException as error:
        return failure(f"{type(error).__name__}: {error}")
    return {SAME: RIGHT, OTHER: UNSEEN}.get(found, REFUSED)
