"""Peak memory of a new process that evaluates the Parquet log, the interpreter and its libraries included."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from workload import parquet

_CHILD = Path(__file__).with_name("peak_memory.py")


@pytest.mark.bar("memory")
def test_memory(contest, size, ours, parquet_log):
    peak = contest.benchmark.pedantic(_peak_megabytes, args=(parquet_log,), rounds=1)
    contest.record(peak, None, rows=size.parquet_rows)


@pytest.mark.bar("memory_growth")
def test_memory_growth(contest, size, ours, parquet_log):
    if not size.small:
        pytest.skip("only in the small version, where the peak itself says little")
    quarter = parquet(size.parquet_rows // 4, row_group=size.row_group)
    peak = contest.benchmark.pedantic(_peak_megabytes, args=(parquet_log,), rounds=1)
    contest.record(peak, _peak_megabytes(quarter), rows=size.parquet_rows)


def _peak_megabytes(path: Path) -> float:
    child = subprocess.run([sys.executable, _CHILD, path], check=True, capture_output=True, text=True)
    return json.loads(child.stdout)["megabytes"]
