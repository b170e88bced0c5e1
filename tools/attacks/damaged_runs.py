"""Damaged `runs.jsonl` files, from which `reproduce` is asked to go on."""

import random
import tempfile
from functools import cache
from pathlib import Path

import offpolicy as op
from attacks.outcomes import RIGHT, failure, refusal
from coin import Coin
from offpolicy.experiments.runs import complete
from offpolicy.experiments.runs_file import FILE
from runs_damage import damaged, random_edits

TRIED = 2_000
ATTACKED = "damaged `runs.jsonl` files"
SURVIVING = (
    "The runs go on from the file and give the numbers of runs that nobody disturbed, to the last bit; or an error of "
    "ours names the file."
)
RUNS, SEED = 6, 5


@cache
def whole() -> tuple[list[dict], bytes]:
    """Return the numbers of all runs, and the bytes of their file."""
    with tempfile.TemporaryDirectory() as folder:
        runs = complete(Coin(), RUNS, seed=SEED, folder=Path(folder), workers=1)
        return runs, (Path(folder) / FILE).read_bytes()


def case(number: int, folder: Path) -> str:
    """Go on from a file that was damaged, every fourth time by a cut as a killed process leaves it."""
    rng = random.Random(number)
    runs, content = whole()
    changed = content[: rng.randrange(len(content))] if rng.random() < 0.25 else damaged(content, random_edits(rng))
    path = folder / FILE
    path.write_bytes(changed)
    try:
        found = complete(Coin(), RUNS, seed=SEED, folder=folder, resume=True, workers=1)
    except op.OffPolicyError as error:
        return refusal(error, FILE)
    except BaseException as error:
        return failure(f"{type(error).__name__}: {error}")
    return RIGHT if found == runs else failure(f"other numbers: {found}")
