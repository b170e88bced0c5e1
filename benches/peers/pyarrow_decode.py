"""pyarrow, which only decodes the columns: the least time that reading this Parquet file takes.

It uses two threads, each with row groups of its own, from a memory map. That is the fastest way with pyarrow here:
`iter_batches`, `dataset` and its own threads by column are slower.
"""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
from workload import COLUMNS, log

NAME = "pyarrow, decoding only"
_THREADS = 2


def run_parquet(path: Path) -> int:
    """Return the number of rows that were decoded."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return sum(pool.map(lambda first: _decode(path, first), range(_THREADS)))


def check() -> None:
    """Check that it reads every row of a file of several row groups; it computes nothing."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.parquet"
        log(rows=240, steps=8).write_parquet(path, row_group_size=100)
        assert run_parquet(path) == 240


def _decode(path: Path, first: int) -> int:
    with pq.ParquetFile(path, memory_map=True) as file:
        groups = range(first, file.num_row_groups, _THREADS)
        return sum(file.read_row_group(i, columns=list(COLUMNS), use_threads=False).num_rows for i in groups)
