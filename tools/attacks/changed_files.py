"""Files that change while they are evaluated: between two passes, at a random moment, or before more is asked."""

import os
import random
import shutil
import threading
import time
from functools import cache
from pathlib import Path

import offpolicy as op
import polars as pl
from attacks.outcomes import BY_POLARS, READABLE, REFUSED, RIGHT, failure, refusal
from logs import random_log

TRIED = 300
ATTACKED = "files changed during an evaluation"
SURVIVING = (
    "The result is that of the file before the change, or wholly that of the file after it, where the change came "
    "before the first row was read; or an error of ours names the file."
)
ASKED = {"discount": 0.9, "estimators": ["step-is", "step-wis", "wdr"]}
BEFORE = random_log(seed=1, episodes=4000, horizon=6)


def fewer(path: Path, rng: random.Random) -> None:
    """Write a part of the rows, in place."""
    BEFORE.filter(pl.col("episode") % rng.randrange(2, 9) == 0).write_parquet(path)


def other_rewards(path: Path, rng: random.Random) -> None:
    """Write other rewards, under the same name at once."""
    beside = path.with_suffix(".new")
    BEFORE.with_columns(reward=pl.col("reward").shuffle(rng.randrange(100)) * 2).write_parquet(beside)
    beside.replace(path)


def a_byte(path: Path, rng: random.Random) -> None:
    """Change one byte among the pages, so that size and footer stay."""
    with path.open("r+b") as file:
        at = rng.randrange(4, path.stat().st_size // 2)
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << rng.randrange(8)]))


def cut(path: Path, rng: random.Random) -> None:
    """Cut the file off."""
    os.truncate(path, rng.randrange(path.stat().st_size))


def longer(path: Path, rng: random.Random) -> None:
    """Write more episodes, in place."""
    more = random_log(seed=2, episodes=rng.randrange(5, 500), horizon=9)
    pl.concat([BEFORE, more.with_columns(pl.col("episode") + 10**9)]).write_parquet(path)


CHANGES = (fewer, other_rewards, a_byte, cut, longer)


@cache
def expected() -> pl.DataFrame:
    """Return the numbers of the file before any change."""
    return op.evaluate(BEFORE, **ASKED).table


def case(number: int, folder: Path) -> str:
    """Change a file under an evaluation of it, and judge the result."""
    rng = random.Random(number)
    path, change = folder / f"log-{number}.parquet", rng.choice(CHANGES)
    BEFORE.write_parquet(path, row_group_size=3000)
    way = rng.choice(("between passes", "at any moment", "at any moment", "before more is asked", "in a query"))
    log = pl.scan_parquet(path) if way == "in a query" else path
    try:
        found = WAYS[way](log, lambda: change(path, rng), rng)
    except op.OffPolicyError as error:
        if way == "in a query":  # which need have no file
            return BY_POLARS if (found := refusal(error)) == REFUSED else found
        return refusal(error, path.name)
    except BaseException as error:
        return failure(f"{type(error).__name__}: {error}")
    if found.equals(expected()):
        return RIGHT
    if way in ("between passes", "before more is asked"):
        return failure(f"another number, changed {way} by {change.__name__}")
    after = shutil.copy(path, path.with_suffix(".after"))
    try:
        whole = op.evaluate(pl.read_parquet(after), **ASKED).table
    except Exception as error:
        return failure(f"another number, changed {way} by {change.__name__}, of a file that is refused now: {error}")
    return READABLE if found.equals(whole) else failure(f"neither number, changed {way} by {change.__name__}")


def between_passes(log, change, rng):
    """Change the file when the tasks of the first pass are done."""
    passes = []

    def run(function, tasks):
        states = [function(task) for task in tasks]
        if not passes:
            change()
        passes.append(len(states))
        return states

    return op.evaluate(log, map=run, **ASKED).table


def at_any_moment(log, change, rng):
    """Change the file in another thread, while this one evaluates it."""
    moment = rng.uniform(0, 0.03)
    other = threading.Thread(target=lambda: (time.sleep(moment), change()))
    other.start()
    try:
        return op.evaluate(log, **ASKED).table
    finally:
        other.join()


def before_more_is_asked(log, change, rng):
    """Change the file when its table is known, and ask for what is read again."""
    ev = op.evaluate(log, horizon=6, **ASKED)
    change()
    asked = rng.choice(
        [
            lambda: ev.values("step-is"),
            lambda: ev["step-is"].interval(method="bootstrap"),
            lambda: ev["step-is"].interval(method="likelihood", bounds=op.Bounds(reward=(-50, 50))),
            lambda: ev["step-is"].interval(method="betting", bounds=op.Bounds(reward=(-50, 50))),
        ]
    )
    asked()
    return pl.DataFrame({"answered": ["with a number of another file"]})


WAYS = {
    "between passes": between_passes,
    "at any moment": at_any_moment,
    "before more is asked": before_more_is_asked,
    "in a query": at_any_moment,
}
