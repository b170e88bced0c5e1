"""Parquet larger than memory: three times the rows must not take more of it."""

import os
import subprocess
import sys
from pathlib import Path

import offpolicy as op
import polars as pl
import pytest
from offpolicy.testing import Walk

BENCHES = Path(__file__).parents[1] / "benches"
#: 6 million rows, from where on memory stays as it is, and 19 million.
COPIES = (36, 108)
CHILD = """
import sys
import offpolicy as op
from offpolicy.testing import Walk
from peak_memory import peak_megabytes

walk, (driver, log) = Walk(), sys.argv[1:]
if driver == "cross_fit":
    op.cross_fit(log, walk, policy=walk.policies["eager"], estimators=["dr"], threads=1)
else:
    op.improve(log, walk, generator=walk.policies, threads=1)
print(peak_megabytes())
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """The same episodes again and again under new ids, and the decoded megabytes by which the two logs differ."""
    walk, episodes = Walk(), 20_000
    piece = walk.simulate(walk.behavior, episodes, seed=1)
    paths = [tmp_path_factory.mktemp("memory") / f"{copies}.parquet" for copies in COPIES]
    for path, copies in zip(paths, COPIES, strict=True):
        again = [piece.lazy().with_columns(pl.col("episode") + episodes * i) for i in range(copies)]
        pl.concat(again).sink_parquet(path, row_group_size=10_000)
    return paths, (COPIES[1] - COPIES[0]) * piece.estimated_size() / 1e6


def peak(driver: str, log: Path) -> float:
    """Megabytes of a process of its own; Polars takes more of them for each thread, so it gets one."""
    path = os.pathsep.join([str(BENCHES), *sys.path])
    environment = os.environ | {"POLARS_MAX_THREADS": "1", "PYTHONPATH": path}
    command = [sys.executable, "-c", CHILD, driver, str(log)]
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


@pytest.mark.slow
@pytest.mark.parametrize("driver", [op.cross_fit, op.improve])
def test_more_rows_take_no_more_memory(logs, driver):
    (few, many), added = logs
    grown = peak(driver.__name__, many) - peak(driver.__name__, few)
    assert grown < added / 4
