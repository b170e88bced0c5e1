"""Assignment of episodes to folds, which depends only on a hash of the episode's id.

    hash(id) = output number id + 1 of SplitMix64 started at mix(seed),   mix(z): its finaliser
    share(id) = hash / 2⁶⁴ in [0, 1),   fold(id) = ⌊folds · share⌋

The id 7 has the same hash as Int8 or UInt64; a text is first hashed to 8 bytes by BLAKE2b. An episode therefore stays
in the same fold for any order of rows, division into files, kind of log, or version of Polars, and is never in two
folds.

Steele, Lea & Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offpolicy._util import polars_calls, scalars
from offpolicy._util.polars_calls import naming_the_log
from offpolicy.errors.kinds.of_columns import no_id_of_episode, wrong_type
from offpolicy.logs.columns import Columns
from offpolicy.logs.sources import Source, open_log
from offpolicy.protocols import Floats

Hashes = NDArray[np.uint64]
Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)

GAMMA = np.uint64(0x9E3779B97F4A7C15)
#: The largest number of folds, because folds use the upper half of a hash.
MOST_FOLDS = 1 << 31


def hash_of(episodes: Any, seed: int = 0) -> Hashes:
    """Return the hash of every id, which is a whole number or a text.

    >>> from offpolicy.folds import hash_of
    >>> [f"{h:016x}" for h in hash_of([0, 1, 2])]
    ['e220a8397b1dcdaf', '6e789e6aa1b965f4', '06c45d188009454f']
    """
    start = mix(np.array([scalars.whole("seed", seed) % 2**64], dtype=np.uint64))
    mixed: Hashes = mix(start + (_keys(_series(episodes)) + np.uint64(1)) * GAMMA)
    return mixed


def share_of(episodes: Any, seed: int = 0) -> Floats:
    """Return each episode's position in the order of the hashes, uniform over [0, 1), in steps of 2⁻⁵³.

    >>> from offpolicy.folds import share_of
    >>> share_of(["ann", "bob"]).round(3)
    array([0.849, 0.734])
    """
    return (hash_of(episodes, seed) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def fold_of(episodes: Any, folds: int, seed: int = 0) -> NDArray[np.int64]:
    """Return the fold of every episode, from 0.

    >>> from offpolicy.folds import fold_of
    >>> fold_of(range(8), folds=2)
    array([1, 0, 0, 1, 0, 0, 0, 1])
    """
    folds = scalars.whole("folds", folds, 1, limit=MOST_FOLDS)
    half = np.uint64(32)
    return ((hash_of(episodes, seed) >> half) * np.uint64(folds) >> half).astype(np.int64)


def share(column: str = "episode", seed: int = 0) -> pl.Expr:
    """Return `share_of` as an expression for any query.

    >>> import offpolicy as op, polars as pl
    >>> from offpolicy import folds
    >>> log = op.demo_log(episodes=1000).lazy()
    >>> log.filter(folds.share() < 0.25).select(pl.col("episode").n_unique()).collect().item()
    245
    """
    return expression(column, partial(share_of, seed=seed), pl.Float64)


def fold(folds: int, column: str = "episode", seed: int = 0) -> pl.Expr:
    """Return `fold_of` as an expression for any query.

    >>> import offpolicy as op
    >>> from offpolicy import folds
    >>> op.demo_log(episodes=4).group_by(fold=folds.fold(2)).len().sort("fold").rows()
    [(0, 18), (1, 20)]
    """
    return expression(column, partial(fold_of, folds=folds, seed=seed), pl.Int64)


@naming_the_log
def split(
    log: Any, fraction: float, seed: int = 0, columns: Columns | None = None
) -> tuple[pl.DataFrame, pl.DataFrame] | tuple[pl.LazyFrame, pl.LazyFrame]:
    """Split a log into the episodes with `share_of` below a fraction, and the others.

    A frame in memory gives frames, and any other log gives queries that read it in bounded memory.

    >>> import offpolicy as op
    >>> from offpolicy.folds import split
    >>> train, test = split(op.demo_log(episodes=1000), 0.25)
    >>> train["episode"].n_unique(), test["episode"].n_unique()
    (245, 755)
    """
    fraction, seed = scalars.number("fraction", fraction, 0, 1, "from 0 to 1"), scalars.whole("seed", seed)
    source = open_log(log)
    column = (columns or Columns()).need("episode", source.columns)
    if (frame := source.in_memory) is not None:
        return _sides(frame, share(column, seed) < fraction)

    def shares(episodes: pl.Series, kept: Source = source) -> Floats:  # the query keeps a temporary file alive
        return share_of(episodes, seed)

    return _sides(source.lazy(), expression(column, shares, pl.Float64) < fraction)


def _sides(log: Frame, chosen: pl.Expr) -> tuple[Frame, Frame]:
    return log.filter(chosen), log.filter(~chosen)


def expression(column: str, function: Callable[[pl.Series], NDArray[Any]], dtype: type[pl.DataType]) -> pl.Expr:
    """Return a function of ids as an expression."""

    def apply(episodes: pl.Series) -> pl.Series:
        return pl.Series(episodes.name, function(episodes), dtype=dtype)

    return polars_calls.column(column).map_batches(apply, return_dtype=dtype, is_elementwise=True)


def _series(episodes: Any) -> pl.Series:
    series = episodes if isinstance(episodes, pl.Series) else pl.Series("episode", episodes)
    if series.null_count():
        row = int(series.is_null().arg_max() or 0)
        raise no_id_of_episode(column=repr(series.name), row=row)
    return series


def _keys(ids: pl.Series) -> Hashes:
    if ids.dtype == pl.UInt64:
        return ids.to_numpy()
    if ids.dtype.is_integer() and ids.dtype not in (pl.Int128, pl.UInt128):
        return ids.cast(pl.Int64).to_numpy().view(np.uint64)
    if ids.dtype in (pl.String, pl.Categorical, pl.Enum):
        text = ids.cast(pl.String)
        runs = text.rle()  # rows of an episode are adjacent
        each = [_digest(value) for value in runs.struct.field("value")]
        return np.repeat(np.array(each, dtype=np.uint64), runs.struct.field("len").to_numpy())
    if ids.is_empty():
        return np.zeros(0, dtype=np.uint64)
    raise wrong_type(column=repr(ids.name), expected="whole numbers or text", found=ids.dtype)


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def mix(z: Hashes) -> Hashes:
    """Apply the finaliser of SplitMix64, a bijection of 64-bit numbers in which each bit affects all others."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
