"""Checks, on a small log and before anything is timed, that a contestant computes what the definition says."""

import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import polars as pl
from definition import ESTIMATORS, Estimate, Estimates, estimates
from workload import DISCOUNT, log

TOLERANCE = 1e-12
"""Largest relative distance to the exact value that rounding explains."""


def agree(run: Callable[[pl.DataFrame], Estimates], differs: Mapping[str, float] | None = None) -> None:
    """Fail unless `run` gives the exact numbers on a small log, up to the known differences of a peer in `differs`."""
    found = run(_small_log())
    exact = _exact()
    for name in ESTIMATORS:
        for field in Estimate._fields:
            number, truth = getattr(found[name], field), getattr(exact[name], field)
            allowed = (differs or {}).get(f"{name} {field}", TOLERANCE)
            if not abs(number / truth - 1) <= allowed:
                raise AssertionError(f"{name} {field} is {number!r}, but exactly {truth!r}")


def agree_on_parquet(run: Callable[[Path], Estimates]) -> None:
    """Fail unless a contestant that reads a Parquet file gives the exact numbers."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.parquet"
        _small_log().write_parquet(path, row_group_size=100)
        agree(lambda _: run(path))


@cache
def _small_log() -> pl.DataFrame:
    return log(rows=240, steps=8)


@cache
def _exact() -> Estimates:
    return estimates(_small_log(), DISCOUNT)
