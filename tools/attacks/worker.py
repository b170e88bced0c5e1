"""Try the cases of one kind of attack one after another, and print what came of each: `worker.py KIND FROM TO`.

A process of its own, so that an abort, a fault of memory or a hang ends no more than a case: the runner sees which one
was tried last. What a case writes to standard error is looked at too, because a panic that was caught leaves its text.
"""

import json
import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import _support  # noqa: F401  makes the helpers of the tests importable
from attacks.outcomes import ALOUD, BY_POLARS, FAILURE, failure


def main(kind: str, start: int, end: int) -> None:
    """Print a line of JSON before each case and one after it."""
    attack = import_module(f"attacks.{kind}")
    report = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what else is printed is not the report
    with tempfile.TemporaryDirectory() as folder:
        for number in range(start, end):
            print(json.dumps({"begins": number}), file=report)
            print(json.dumps({"ends": number, "outcome": watched(attack.case, number, Path(folder))}), file=report)


def watched(case, number: int, folder: Path) -> str:
    """Return the outcome of a case; the text of a panic on standard error is a failure, whatever else was returned."""
    with tempfile.TemporaryFile() as captured:
        stderr = os.dup(2)
        os.dup2(captured.fileno(), 2)
        try:
            outcome = case(number, folder)
        except BaseException as error:
            outcome = failure(f"{type(error).__name__}: {error}")
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        captured.seek(0)
        printed = captured.read().decode(errors="replace")
    panicked = "panicked" in printed and not outcome.startswith(FAILURE)
    if panicked and outcome == BY_POLARS:
        return ALOUD
    return failure(f"{outcome}, and printed: {printed}") if panicked else outcome


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
