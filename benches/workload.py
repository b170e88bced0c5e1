"""The log that every benchmark reads: episodes × steps rows, in memory or as one Parquet file.

A state has two actions. The behaviour policy takes the first with probability p in (0.2, 0.8), the target policy with p
+ d, |d| < 0.08. So E[ρ_t] = 1, and log ρ_{1:100} has a spread of about 1: the weights vary without collapsing. Q̂ is
the discounted reward to come plus noise, and V̂ = Σ_a π1(a) Q̂(a).
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

DISCOUNT = 0.99
COLUMNS = ("episode", "step", "reward", "behavior_prob", "target_prob", "q_hat", "v_hat")
ROW_GROUP = 1_048_576
"""Rows per Parquet row group, no multiple of an episode's length, so that groups cut episodes."""

_PIECE = 1_000_000
_FORMAT = 1


def log(rows: int, steps: int = 100, seed: int = 0) -> pl.DataFrame:
    """Return a log of `rows` rows, sorted by episode and step; `steps` divides `rows`."""
    return pl.concat(pieces(rows, steps, seed), rechunk=True)


def pieces(rows: int, steps: int = 100, seed: int = 0) -> Iterator[pl.DataFrame]:
    """Yield the same log, about a million rows at a time."""
    if rows % steps:
        raise ValueError(f"rows must be a multiple of steps; got rows={rows}, steps={steps}")
    episodes = rows // steps
    at_once = max(1, _PIECE // steps)
    for first in range(0, episodes, at_once):
        yield _piece(first, min(at_once, episodes - first), steps, seed)


def _piece(first: int, episodes: int, steps: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng([seed, steps, first])
    shape = (episodes, steps)
    behavior = rng.uniform(0.2, 0.8, shape)
    target = behavior + rng.uniform(-0.08, 0.08, shape)
    to_come = (1 - DISCOUNT ** np.arange(steps, 0, -1)) / (1 - DISCOUNT)
    q_first = to_come + rng.normal(0.0, 0.3, shape)
    q_second = to_come + rng.normal(0.0, 0.3, shape)
    took_first = rng.random(shape) < behavior
    columns = {
        "episode": np.repeat(np.arange(first, first + episodes, dtype=np.int64), steps),
        "step": np.tile(np.arange(steps, dtype=np.int32), episodes),
        "reward": rng.normal(1.0, 0.5, shape),
        "behavior_prob": np.where(took_first, behavior, 1 - behavior),
        "target_prob": np.where(took_first, target, 1 - target),
        "q_hat": np.where(took_first, q_first, q_second),
        "v_hat": target * q_first + (1 - target) * q_second,
    }
    return pl.DataFrame({name: column.ravel() for name, column in columns.items()})


def folder() -> Path:
    """Return the folder of Parquet logs: OFFPOLICY_BENCH_FOLDER, or else one in the system's temporary folder."""
    chosen = os.environ.get("OFFPOLICY_BENCH_FOLDER")
    path = Path(chosen) if chosen else Path(tempfile.gettempdir()) / "offpolicy-bench"
    path.mkdir(parents=True, exist_ok=True)
    return path


def parquet(rows: int, steps: int = 100, row_group: int = ROW_GROUP, seed: int = 0) -> Path:
    """Return the log as one zstd Parquet file, written once in bounded memory and kept in `folder()`."""
    path = folder() / f"log-v{_FORMAT}-{rows}x{steps}-{row_group}-{seed}.parquet"
    if not path.exists():
        unfinished = path.with_suffix(f".{os.getpid()}.tmp")
        try:
            _write(unfinished, rows, steps, row_group, seed)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    return path


def _write(path: Path, rows: int, steps: int, row_group: int, seed: int) -> None:
    import pyarrow.parquet as pq

    waiting = None
    writer = None
    for piece in pieces(rows, steps, seed):
        waiting = piece if waiting is None else pl.concat([waiting, piece])
        writer = writer or pq.ParquetWriter(path, waiting.to_arrow().schema, compression="zstd")
        while waiting.height >= row_group:
            writer.write_table(waiting.head(row_group).to_arrow(), row_group_size=row_group)
            waiting = waiting.slice(row_group)
    with writer:
        if waiting.height:
            writer.write_table(waiting.to_arrow(), row_group_size=row_group)
