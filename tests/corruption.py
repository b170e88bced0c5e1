"""What becomes of a broken file; a module of its own, so that another process can import it."""

import math
import os
import tempfile
from pathlib import Path

import offpolicy as op
import polars as pl

REFUSED = "refused"
CORRECT = "correct"


def outcome(path: Path) -> str:
    """`refused` by a typed error that names the file, `correct` for a finite table, or what else happened."""
    with tempfile.TemporaryFile() as captured:
        stderr = os.dup(2)
        os.dup2(captured.fileno(), 2)
        try:
            result = evaluate(path)
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        captured.seek(0)
        printed = captured.read().decode(errors="replace")
    return f"{result}, and printed: {printed}" if "panicked" in printed else result


def evaluate(path: Path) -> str:
    try:
        ev = op.evaluate(path, discount=0.9)
    except op.OffPolicyError as error:
        return REFUSED if path.name in str(error) else f"refused without the file: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    floats = ev.table.select(pl.selectors.float())
    finite = all(cell is None or math.isfinite(cell) for row in floats.iter_rows() for cell in row)
    return CORRECT if finite else f"a table that is not finite: {floats}"
