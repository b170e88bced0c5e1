"""Small random logs with a fixed seed, ways to cut and store them, and results as bits."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

PROBABILITIES = ("behavior_prob", "target_prob")
MODEL = ("q_hat", "v_hat", "r_hat", "transition_ratio")


def skeleton(lengths: Sequence[int], first_step: int = 0, ids: Sequence | None = None) -> pl.DataFrame:
    """The columns episode and step of episodes with these lengths."""
    lengths = np.asarray(lengths)
    ids = np.arange(len(lengths)) if ids is None else np.asarray(ids)
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return pl.DataFrame(
        {
            "episode": np.repeat(ids, lengths),
            "step": (np.arange(lengths.sum()) - starts + first_step).astype(np.int32),
        }
    )


def random_lengths(rng: np.random.Generator, episodes: int, horizon: int, ragged: bool) -> np.ndarray:
    """One episode at least has the full length."""
    lengths = rng.integers(1, horizon + 1, episodes) if ragged else np.full(episodes, horizon)
    lengths[rng.integers(episodes)] = horizon
    return lengths


def random_log(
    seed: int, episodes: int = 7, horizon: int = 5, *, ragged: bool = True, first_step: int = 0
) -> pl.DataFrame:
    """A log with every column of the design, full-precision floats, and ids in no order."""
    rng = np.random.default_rng(seed)
    ids = rng.permutation(10 * episodes)[:episodes].astype(np.int64)
    log = skeleton(random_lengths(rng, episodes, horizon, ragged), first_step, ids)
    n = log.height
    return log.with_columns(
        reward=rng.normal(0.5, 1.0, n),
        behavior_prob=rng.uniform(0.1, 1.0, n),
        target_prob=rng.uniform(0.05, 1.0, n),
        q_hat=rng.normal(0.5, 1.0, n),
        v_hat=rng.normal(0.5, 1.0, n),
        r_hat=rng.normal(0.5, 0.5, n),
        transition_ratio=rng.uniform(0.5, 1.5, n),
    )


def bounded_log(
    seed: int,
    episodes: int,
    horizon: int,
    reward: tuple[float, float] = (0.0, 1.0),
    model: tuple[float, float] = (-0.5, 0.5),
    *,
    ragged: bool = True,
) -> pl.DataFrame:
    """A random log with rewards and model values in ranges, and ratios up to 2."""
    ranges = {"reward": reward, "q_hat": model, "v_hat": model, "r_hat": model}
    columns = {name: low + (high - low) * (pl.col(name) - pl.col(name).floor()) for name, (low, high) in ranges.items()}
    return random_log(seed, episodes, horizon, ragged=ragged).with_columns(behavior_prob=0.5, **columns)


def speaking_log() -> pl.DataFrame:
    """Episodes 101, 202, 303 and 404 of lengths 4, 3, 2 and 4: easy to spoil, easy to find in a message."""
    keys = skeleton([4, 3, 2, 4], ids=[101, 202, 303, 404])
    return random_log(61, episodes=13, horizon=1).with_columns(keys["episode"], keys["step"])


def wide_log(seed: int, episodes: int, horizon: int) -> pl.DataFrame:
    """A log whose numbers spread over 24 decades, so that every order of a naive sum rounds differently."""
    rng = np.random.default_rng(seed)
    log = random_log(seed, episodes, horizon)
    n = log.height

    def wide() -> np.ndarray:
        return rng.normal(size=n) * 10.0 ** rng.uniform(-12, 12, n)

    return log.with_columns(reward=wide(), q_hat=wide(), v_hat=wide(), r_hat=wide())


def with_ratio(log: pl.DataFrame) -> pl.DataFrame:
    """The same log with ρ itself instead of the two probabilities."""
    return log.with_columns(ratio=pl.col("target_prob") / pl.col("behavior_prob")).drop(PROBABILITIES)


def one_step_log(rewards: Iterable[float], **columns: object) -> pl.DataFrame:
    """A bandit log, ρ=1 unless a ratio is given."""
    rewards = list(rewards)
    log = skeleton([1] * len(rewards)).with_columns(reward=pl.Series(rewards, dtype=pl.Float64))
    return log.with_columns(**{"ratio": pl.lit(1.0), **columns})


def episodes_of(log: pl.DataFrame, **renamed: str) -> list[list[dict]]:
    """Rows by episode for the reference; `target_prob="pa"` reads that column under the default name."""
    for name, column in renamed.items():
        log = log.with_columns(pl.col(column).alias(name))
    return [part.to_dicts() for part in log.partition_by("episode", maintain_order=True)]


def file_pieces(log: pl.DataFrame, folder: Path, cuts: Iterable[int], **options: object) -> list[Path]:
    """The log cut before these rows, wherever that falls in an episode, a Parquet file each."""
    folder.mkdir(parents=True, exist_ok=True)
    edges = [0, *sorted(set(cuts) - {0, log.height}), log.height]
    paths = []
    for index, (start, end) in enumerate(pairwise(edges)):
        paths.append(folder / f"part-{index:03}.parquet")
        log[start:end].write_parquet(paths[-1], **options)
    return paths


def bits(evaluation) -> list[tuple]:
    """The table with every float as its exact hexadecimal."""
    return row_bits(evaluation.table.sort("policy", "estimator"))


def detail_bits(evaluation) -> list[list[tuple]]:
    """The same of all that tells whether weights can be trusted."""
    return [row_bits(getattr(evaluation, name)) for name in ("diagnostics", "by_step", "leverage", "lengths")]


def row_bits(frame: pl.DataFrame) -> list[tuple]:
    """Rows with every float as its exact hexadecimal."""
    return [tuple(cell.hex() if isinstance(cell, float) else cell for cell in row) for row in frame.iter_rows()]


def value_bits(evaluation, estimator: str) -> dict:
    """Per-trajectory values by episode as bits."""
    return {row["episode"]: row["value"].hex() for row in evaluation.values(estimator).iter_rows(named=True)}
