"""A log in one zstd Parquet file whose row groups cut episodes, against decoding alone and against query engines."""

import pytest
from workload import DISCOUNT


@pytest.mark.bar("decode_values")
def test_decode_values(contest, size, ours, parquet_log, peer):
    pyarrow = peer("pyarrow_decode")
    contest.race(
        lambda: ours.evaluate_without_wis_error(parquet_log),
        lambda: pyarrow.run_parquet(parquet_log),
        rows=size.parquet_rows,
        rounds=size.slow_rounds,
    )


@pytest.mark.bar("decode")
def test_decode(contest, size, ours, parquet_log, peer):
    pyarrow = peer("pyarrow_decode")
    contest.race(
        lambda: ours.evaluate(parquet_log),
        lambda: pyarrow.run_parquet(parquet_log),
        rows=size.parquet_rows,
        rounds=size.slow_rounds,
    )


@pytest.mark.bar("duckdb")
def test_duckdb(contest, size, ours, parquet_log, peer):
    _race_query(contest, size, ours, parquet_log, peer("duckdb_sql"))


@pytest.mark.bar("polars_streaming")
def test_polars_streaming(contest, size, ours, parquet_log, peer):
    _race_query(contest, size, ours, parquet_log, peer("polars_query"))


def _race_query(contest, size, ours, path, query):
    contest.race(
        lambda: ours.evaluate(path),
        lambda: query.run_parquet(path, DISCOUNT),
        rows=size.parquet_rows,
        rounds=size.slow_rounds,
    )
