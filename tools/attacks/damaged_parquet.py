"""Parquet files with bytes that were changed, cut off, put in or taken from another file."""

import math
import random
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import offpolicy as op
import polars as pl
import pyarrow.parquet
from attacks.outcomes import BY_POLARS, READABLE, REFUSED, RIGHT, failure, judged
from logs import random_log

TRIED = 15_000
ATTACKED = "damaged Parquet files"
SURVIVING = (
    "The result is that of the whole file; or an error of ours names the file; or the file has no checksum there and "
    "says other numbers now, pyarrow reads the same ones, and the result is right of them. A user's own "
    "`pl.scan_parquet` is read by Polars, which does not verify checksums, and is judged by what Polars reads."
)

LOG = random_log(91, episodes=30, horizon=8).with_columns(pl.format("user-{}", "episode").alias("episode"))
WAYS = ("path", "path", "path", "any", "query", "values")
COMPRESSIONS = ("zstd", "snappy", "none", "gzip", "brotli", "lz4")


@cache
def whole(compression: str, version: str, checksums: bool, dictionary: bool) -> bytes:
    """Return the bytes of an undamaged file, which pyarrow or Polars wrote."""
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(
        LOG.to_arrow(),
        sink,
        row_group_size=40,
        compression=compression,
        data_page_version=version,
        write_page_checksum=checksums,
        use_dictionary=dictionary,
    )
    return sink.getvalue().to_pybytes()


def evaluated(log: object, way: str) -> pl.DataFrame:
    """Return all numbers that a way of reading gives."""
    ev = op.evaluate(log, discount=0.9, order="any" if way == "any" else "sorted", threads=2)
    return ev.values("dr").sort("episode") if way == "values" else ev.table


@cache
def expected(way: str) -> pl.DataFrame:
    """Return the right numbers."""
    return evaluated(LOG, way)


def damaged(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """Return a file damaged in one way or another, every second time in its footer."""
    made = bytearray(content)
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    start = footer if rng.random() < 0.5 else 0
    at = rng.randrange(start, len(content))
    size = rng.randrange(1, 64)
    match rng.choice(("flip", "flip", "flip", "over", "zero", "cut", "out", "in", "move", "splice")):
        case "flip":
            for _ in range(rng.choice((1, 1, 1, 2, 8))):
                made[rng.randrange(start, len(made))] ^= 1 << rng.randrange(8)
        case "over":
            made[at : at + size] = rng.randbytes(len(made[at : at + size]))
        case "zero":
            made[at : at + size] = bytes(len(made[at : at + size]))
        case "cut":
            del made[at:]
        case "out":
            del made[at : at + size]
        case "in":
            made[at:at] = rng.randbytes(size)
        case "move":
            part = bytes(made[at : at + size])
            del made[at : at + size]
            to = rng.randrange(len(made) + 1)
            made[to:to] = part
        case "splice":
            made = made[:at] + other[min(at, len(other)) :]
    return bytes(made)


def case(number: int, folder: Path) -> str:
    """Evaluate one damaged file and judge what came of it."""
    rng = random.Random(number)
    kinds = [
        (rng.choice(COMPRESSIONS), rng.choice(("1.0", "2.0")), rng.random() < 0.5, rng.random() < 0.5) for _ in "ab"
    ]
    way = rng.choice(WAYS)
    path = folder / f"damaged-{number}.parquet"
    path.write_bytes(damaged(*(whole(*kind) for kind in kinds), rng))
    try:
        log = pl.scan_parquet(path) if way == "query" else path
        # What is wrong in the rows of a query is said of the query, which may have no file.
        result = judged(lambda: evaluated(log, way), expected(way), None if way == "query" else path.name)
        if way == "query" and result is REFUSED:
            return BY_POLARS
        return compared(result, path, way, whole(*kinds[0])) if isinstance(result, pl.DataFrame) else result
    finally:
        path.unlink()


def compared(found: pl.DataFrame, path: Path, way: str, before: bytes) -> str:
    """Judge a result that is not that of the whole file by what pyarrow reads in the damaged one."""
    cells = [cell for row in found.iter_rows() for cell in row if isinstance(cell, float)]
    if not all(map(math.isfinite, cells)):
        return failure(f"a table that is not finite, by {way}")
    if way == "query":  # read by Polars, which was asked to
        return READABLE if evaluated(pl.read_parquet(path), way).equals(found) else failure("not what Polars reads")
    theirs = by_pyarrow(path, way)
    if isinstance(theirs, str) and restored(found, path, way, before):
        theirs = by_pyarrow(path, way)
    if isinstance(theirs, str):
        return failure(f"another number, by {way}, of a file that {theirs}")
    return READABLE if theirs.equals(found) else failure(f"another number, by {way}, than that of what pyarrow reads")


def by_pyarrow(path: Path, way: str) -> pl.DataFrame | str:
    """Return the numbers of what pyarrow reads, or what is wrong."""
    try:
        table = _reader().submit(pyarrow.parquet.read_table, path).result(timeout=60)
    except BrokenProcessPool:
        _reader.cache_clear()
        return "ends pyarrow's process"
    except Exception as error:
        return f"pyarrow refuses: {error}"
    try:
        return evaluated(table, way)
    except op.OffPolicyError as error:
        return f"is refused when pyarrow reads it: {error}"


def restored(found: pl.DataFrame, path: Path, way: str, before: bytes) -> bool:
    """Put back, one by one, the bytes that make no difference to the result; False where none was put back.

    Other readers refuse damage in places that no number depends on, such as statistics.
    """
    content = bytearray(path.read_bytes())
    changed = [at for at, (new, old) in enumerate(zip(content, before, strict=False)) if new != old]
    if len(content) != len(before) or len(changed) > 64:
        return False
    restoring = 0
    for at in changed:
        damage, content[at] = content[at], before[at]
        path.write_bytes(content)
        if judged(lambda: evaluated(path, way), found) is RIGHT:
            restoring += 1
        else:
            content[at] = damage
    path.write_bytes(content)
    return restoring > 0


@cache
def _reader() -> ProcessPoolExecutor:
    """Another process, which pyarrow may end without harm."""
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"))
