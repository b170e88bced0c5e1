"""The amounts of data: as the bars say, or small enough for CI."""

from dataclasses import dataclass

from workload import ROW_GROUP


@dataclass(frozen=True)
class Size:
    """Rows in memory and in the Parquet file, the long horizon, and rounds of fast and slow contests."""

    memory_rows: int
    parquet_rows: int
    row_group: int
    long_steps: int
    rounds: int
    slow_rounds: int
    small: bool


FULL = Size(10_000_000, 100_000_000, ROW_GROUP, long_steps=10_000, rounds=9, slow_rounds=3, small=False)
SMALL = Size(1_000_000, 4_000_000, 131_071, long_steps=1_000, rounds=11, slow_rounds=3, small=True)
