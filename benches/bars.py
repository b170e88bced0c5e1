"""The limits that the benchmarks must reach, as data. The table shows a bar that is not met as such.

Ratios of times that were measured in one run are comparable between machines; times are not. `guard` is the same bar
with much slack, for the small version that CI runs: it catches a regression, not noise.
"""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """The way to compare our time with the peer's, and the side of the limit on which the ratio must be."""

    SPEED = "at least so many times the peer's rows a second"
    TIME = "at most so many times the peer's time"
    EXTRA = "at most this part of the peer's time on top of it"
    MEMORY = "at most so many megabytes"
    GROWTH = "at most so many times the peer's memory"
    CORE = "at most so many seconds of one core"


@dataclass(frozen=True)
class Bar:
    """One row of the table. A bar whose `limit` is None is for comparison only."""

    what: str
    kind: Kind
    limit: float | None
    guard: float | None

    def ratio(self, ours: float, peer: float | None) -> float:
        """Return the number that is compared with the limit, from seconds or megabytes."""
        if self.kind is Kind.SPEED:
            return peer / ours
        if self.kind is Kind.EXTRA:
            return ours / peer - 1
        return ours if peer is None else ours / peer

    def met(self, ratio: float, limit: float | None) -> bool | None:
        """Tell whether a ratio keeps the limit, or return None where there is no limit."""
        if limit is None:
            return None
        return ratio >= limit if self.kind is Kind.SPEED else ratio <= limit


BARS = {
    "numba": Bar("in memory / Numba loop, two threads, told the shape", Kind.SPEED, 0.8, 0.2),
    "numba_from_log": Bar("in memory / Numba loop that finds the episodes", Kind.SPEED, None, None),
    "numpy": Bar("in memory / NumPy on dense arrays", Kind.SPEED, 3.0, 0.5),
    "polars": Bar("in memory / Polars query", Kind.SPEED, 10.0, 2.0),
    "scope_rl": Bar("in memory / SCOPE-RL 0.2.1 on prepared arrays", Kind.SPEED, 30.0, 8.0),
    "decode_values": Bar("Parquet, no error of step-wis / pyarrow decoding only", Kind.TIME, 1.3, 3.0),
    "decode": Bar("Parquet, with all errors / pyarrow decoding only", Kind.TIME, 1.9, 4.0),
    "duckdb": Bar("Parquet / DuckDB SQL", Kind.SPEED, 5.0, 1.5),
    "polars_streaming": Bar("Parquet / Polars streaming query", Kind.SPEED, 3.0, 0.5),
    "memory": Bar("Parquet, peak memory", Kind.MEMORY, 600.0, 600.0),
    "memory_growth": Bar("Parquet, peak memory / that of a quarter of the rows", Kind.GROWTH, None, 1.5),
    "policy": Bar("one more policy in the scan / the first alone", Kind.EXTRA, 0.7, 1.2),
    "mixture": Bar("a mixture, step-is and step-wis / its policy alone", Kind.EXTRA, 0.4, 1.0),
    "diagnostics": Bar("all diagnostics in the scan / estimates and errors alone", Kind.EXTRA, None, 2.0),
    "tabular": Bar("tabular fit, values of 4 policies, H = 100 / SciPy sparse", Kind.SPEED, 5.0, 1.5),
    "annotate": Bar("annotate by a tabular model (20 M rows/s asked) / NumPy", Kind.SPEED, None, 0.8),
    "horizon": Bar("H = 10,000 / H = 100, equal rows", Kind.TIME, 1.5, 4.0),
    "simulate": Bar("Mountain Car, 5000 trajectories / Gymnasium vector-env loop", Kind.SPEED, 10.0, 4.0),
    "simulate_core": Bar("Mountain Car, 5000 trajectories, on one core", Kind.CORE, 0.15, None),
    "kernel": Bar("Sailing, kernel fit and values of 4 mixtures / NumPy, 243 neighbours", Kind.SPEED, 10.0, 5.0),
    "kernel_core": Bar("Sailing, kernel fit and values of 4 mixtures, on one core", Kind.CORE, 1.0, None),
    "bootstrap": Bar("bootstrap of step-is, trajectories × replicates / NumPy, indices drawn", Kind.SPEED, None, 0.5),
    "bootstrap_core": Bar("bootstrap of step-is, 1M trajectories × 10,000, on one core", Kind.CORE, 60.0, None),
    "bootstrap_step_wis_core": Bar(
        "bootstrap of step-wis, H = 100, 100,000 trajectories × 10,000, on one core", Kind.CORE, 60.0, None
    ),
    "betting_core": Bar("betting interval of step-is, 1M trajectories, on one core", Kind.CORE, 10.0, None),
}
