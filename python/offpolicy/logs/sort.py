"""An external sort of a log by episode and step.

Rows go to temporary files (buckets) by a hash of their episode, and each bucket is sorted in memory. Episodes end up in
another order than sorting the whole log would give; the estimates do not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from offpolicy._util import polars_calls
from offpolicy._util.forked import check_not_forked
from offpolicy._util.interruptible import interruptible
from offpolicy._util.scratch import ScratchFolder
from offpolicy.logs.columns import Columns
from offpolicy.logs.sources import ParquetSource, Source, several

#: Rows per bucket, which is sorted in memory.
BUCKET_ROWS = 4_000_000
#: Rows read at a time.
BATCH_ROWS = 1_000_000
#: Number of buckets if the number of rows is not known.
UNKNOWN_BUCKETS = 16


def tidy(source: Source, names: list[str], columns: Columns, dedupe: bool) -> tuple[Source, int]:
    """Return the log sorted, and how many repeated rows were dropped."""
    check_not_forked()
    with polars_calls.reading(source):
        return interruptible(lambda go_on: _tidy(source, names, columns, dedupe, go_on))


def _tidy(
    source: Source, names: list[str], columns: Columns, dedupe: bool, go_on: Callable[[], None]
) -> tuple[Source, int]:
    folder = ScratchFolder()
    keys, root, rows = [columns.episode, columns.step], folder.path, 0
    buckets = UNKNOWN_BUCKETS if source.rows is None else 1 + source.rows // BUCKET_ROWS
    for part, frame in enumerate(source.frames(names, BATCH_ROWS)):
        rows += frame.height
        bucket = frame[columns.episode].hash(0) % buckets
        for number in range(buckets):
            go_on()
            chosen = frame.filter(bucket == number)
            if chosen.height:
                target = root / f"bucket-{number}"
                target.mkdir(exist_ok=True)
                chosen.write_parquet(target / f"{part}.parquet", compression="lz4")
    paths, kept = [], 0
    for bucket_folder in sorted(root.glob("bucket-*")):
        go_on()
        frame = pl.read_parquet(bucket_folder / "*.parquet").sort(polars_calls.exactly(keys), maintain_order=True)
        frame = frame.unique(maintain_order=True) if dedupe else frame
        kept += frame.height
        paths.append(str(root / f"{bucket_folder.name}.parquet"))
        frame.write_parquet(paths[-1], compression="lz4")
        for file in bucket_folder.iterdir():
            file.unlink()
    if not paths:
        return source, 0
    sorted_source = ParquetSource(paths, keep=folder)
    sorted_source.names = [several(source.names)] * len(paths)
    sorted_source.is_sorted, sorted_source.is_deduped = True, dedupe
    sorted_source.rows_are_the_logs = False
    return sorted_source, rows - kept
