"""What becomes of a broken file; a module of its own, so that another process can import it."""

import math
import os
import tempfile
from pathlib import Path

import offpolicy as op
import polars as pl
from offpolicy.testing import Walk

REFUSED = "refused"
CORRECT = "correct"


def outcome(path: Path, how: str = "direct") -> str:
    """`refused` by a typed error that names the file, `correct` for a finite table, or what else happened."""
    with tempfile.TemporaryFile() as captured:
        stderr = os.dup(2)
        os.dup2(captured.fileno(), 2)
        try:
            result = evaluate(path, how)
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        captured.seek(0)
        printed = captured.read().decode(errors="replace")
    ours = how != "query"  # Polars says what it likes of a query that is its own
    return f"{result}, and printed: {printed}" if ours and "panicked" in printed else result


def evaluate(path: Path, how: str) -> str:
    try:
        log = pl.scan_parquet(path) if how == "query" else path
        ev = op.evaluate(log, discount=0.9, order="any" if how == "any" else "sorted")
    except op.OffPolicyError as error:
        named = path.name in str(error) or (how == "query" and not isinstance(error, op.BadFileError))
        return REFUSED if named else f"refused without the file: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    floats = ev.table.select(pl.selectors.float())
    finite = all(cell is None or math.isfinite(cell) for row in floats.iter_rows() for cell in row)
    return CORRECT if finite else f"a table that is not finite: {floats}"


WALK = Walk()


def driven(path: Path, how: str) -> str:
    """The same of what fits models to a file, which Polars reads too."""
    eager = WALK.policies["eager"]
    work = {
        "cross_fit": lambda: op.cross_fit(path, WALK, policy=eager),
        "improve": lambda: op.improve(path, WALK, generator={"eager": eager}),
        "behavior": lambda: op.estimate_behavior(path, WALK),
    }
    try:
        work[how]()
    except op.BadFileError as error:
        return REFUSED if path.name in str(error) else f"refused without the file: {error}"
    except op.OffPolicyError:
        return REFUSED  # for what its rows say
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return CORRECT
