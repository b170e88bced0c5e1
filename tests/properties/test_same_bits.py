"""Numeric promise 1: threads, batches, row groups, files, order and executors change no bit of a result."""

import multiprocessing
import random
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import duckdb
import offpolicy as op
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from logs import bits as estimate_bits
from logs import detail_bits, file_pieces, skeleton, value_bits, wide_log

ARGUMENTS = {"discount": 0.97, "baseline": 0.5}


def evaluate(log, **more):
    return op.evaluate(log, **ARGUMENTS, **more)


def bits(ev):
    return estimate_bits(ev), detail_bits(ev)


@pytest.fixture(scope="module")
def expected(wide):
    return bits(evaluate(wide, threads=1))


@pytest.fixture(scope="module")
def big():
    """Large enough to be split among threads."""
    return wide_log(seed=13, episodes=4000, horizon=60)


@pytest.fixture(scope="module")
def big_expected(big):
    return bits(evaluate(big, threads=1))


def test_naive_sums_of_this_log_depend_on_the_order(wide):
    ev = evaluate(wide)
    for estimator in ("mc", "step-is", "dr", "wdr"):
        values = ev.values(estimator)["value"].to_list()
        sums = {sum(random.Random(seed).sample(values, len(values))) for seed in range(20)}
        assert len(sums) > 1


def test_the_log_asks_for_every_estimator(expected):
    assert len(expected[0]) == 11


@pytest.mark.parametrize("threads", range(2, 9))
def test_threads(big, big_expected, threads):
    assert bits(evaluate(big, threads=threads)) == big_expected


def test_all_cores(big, big_expected):
    assert bits(evaluate(big)) == big_expected


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 7, 64, 1000, 10**6])
def test_batches_of_a_lazy_frame(wide, expected, batch_rows):
    assert bits(evaluate(wide.lazy(), batch_rows=batch_rows)) == expected


@pytest.mark.parametrize("batch_rows", [1000, 4096, 10**6])
def test_batches_of_a_big_lazy_frame(big, big_expected, batch_rows):
    assert bits(evaluate(big.lazy(), batch_rows=batch_rows)) == big_expected


@pytest.mark.parametrize("size", [1, 2, 3])
def test_batches_and_files_of_steps_that_count_from_one(wide, tmp_path, size):
    log = wide[:40].with_columns(pl.col("step") + 1)
    expected = bits(evaluate(wide[:40]))
    paths = file_pieces(log, tmp_path, range(0, 40, size))
    for source in (log, log.lazy(), paths, paths[::-1]):
        assert bits(evaluate(source, batch_rows=size)) == expected


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64])
def test_chunks_of_a_frame(wide, expected, chunk):
    chunked = pl.concat([wide[start : start + chunk] for start in range(0, wide.height, chunk)], rechunk=False)
    assert chunked.n_chunks() > 1
    assert bits(evaluate(chunked)) == expected


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("row_group_size", [1, 3, 10, 1000])
def test_row_groups(wide, expected, tmp_path, row_group_size, threads):
    path = tmp_path / "log.parquet"
    pyarrow.parquet.write_table(wide.to_arrow(), path, row_group_size=row_group_size)
    assert bits(evaluate(path, threads=threads)) == expected
    assert bits(evaluate(path, threads=threads, batch_rows=5)) == expected


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_row_groups_of_a_big_file(big, big_expected, tmp_path, threads):
    path = tmp_path / "log.parquet"
    big.write_parquet(path, row_group_size=3001)
    assert bits(evaluate(path, threads=threads)) == big_expected


@pytest.mark.parametrize("seed", range(6))
def test_random_cuts_into_files_in_any_order(wide, expected, tmp_path, seed):
    rng = random.Random(seed)
    cuts = rng.sample(range(wide.height), k=rng.choice([1, 3, 20, 100]))
    paths = file_pieces(wide, tmp_path, cuts, row_group_size=rng.choice([1, 4, 1000]))
    ev = evaluate(paths)
    assert bits(ev) == expected
    rng.shuffle(paths)
    shuffled = evaluate(paths)
    assert bits(shuffled) == expected
    for estimator in ("mc", "dr", "dr-v2", "step-wis", "wdr"):
        assert value_bits(shuffled, estimator) == value_bits(evaluate(wide), estimator)


def test_a_file_for_every_row(wide, tmp_path):
    short = wide[:60]
    paths = file_pieces(short, tmp_path, range(60))
    assert len(paths) == 60
    expected = bits(evaluate(short))
    assert bits(evaluate(paths)) == expected
    assert bits(evaluate(paths[::-1])) == expected


@pytest.mark.parametrize("first_step", [0, 1])
def test_one_episode_in_pieces_that_come_backwards(wide, tmp_path, first_step):
    lengths = wide.group_by("episode").len().sort("len", "episode")
    longest = wide.filter(pl.col("episode") == lengths["episode"][-1])
    longest = longest.with_columns(step=pl.col("step") + first_step)
    paths = file_pieces(longest, tmp_path, range(longest.height))
    assert len(paths) > 5
    assert bits(evaluate(paths[::-1])) == bits(evaluate(longest))


@pytest.fixture(scope="module")
def pieces(wide, tmp_path_factory):
    return file_pieces(wide, tmp_path_factory.mktemp("pieces"), [50, 51, 207, 300, 444])


def test_builtin_map(pieces, expected):
    assert bits(evaluate(pieces, map=map)) == expected


@pytest.mark.parametrize("order", [1, -1])
def test_thread_executor(pieces, expected, order):
    with ThreadPoolExecutor(3) as pool:
        assert bits(evaluate(pieces[::order], map=pool.map)) == expected


def test_process_executor(pieces, expected):
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert bits(evaluate(pieces, map=pool.map)) == expected
        assert bits(evaluate(pieces[::-1], map=pool.map)) == expected


def test_executors_give_the_same_values(pieces, wide):
    ev = evaluate(pieces, map=map)
    for estimator in ("step-is", "dr", "wdr"):
        assert value_bits(ev, estimator) == value_bits(evaluate(wide), estimator)


def test_sources(wide, expected, tmp_path):
    path = tmp_path / "log.parquet"
    wide.write_parquet(path, row_group_size=37)
    table = pyarrow.parquet.read_table(path)
    sources = {
        "frame": wide,
        "lazy frame": wide.lazy(),
        "scan": pl.scan_parquet(path),
        "str": str(path),
        "path": path,
        "list": [path],
        "table": table,
        "chunked table": pa.Table.from_batches(table.to_batches(max_chunksize=11)),
        "dataset": pyarrow.dataset.dataset(path),
        "reader": pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=13)),
        "record batch": table.combine_chunks().to_batches()[0],
        "duckdb": duckdb.sql(f"select * from read_parquet('{path}') order by file_row_number"),
        "pandas": table.to_pandas(),
    }
    assert {name: bits(evaluate(source)) for name, source in sources.items()} == dict.fromkeys(sources, expected)


@pytest.mark.parametrize("seed", range(3))
def test_rows_in_any_order_when_asked_to_sort(wide, expected, tmp_path, seed):
    shuffled = wide.sample(fraction=1.0, shuffle=True, seed=seed)
    assert bits(evaluate(shuffled, order="any")) == expected
    paths = file_pieces(shuffled, tmp_path, [100, 300])
    assert bits(evaluate(paths, order="any")) == expected


def test_episodes_in_any_order(wide, expected):
    groups = wide.partition_by("episode")
    for seed in range(3):
        random.Random(seed).shuffle(groups)
        assert bits(evaluate(pl.concat(groups))) == expected


def test_the_same_call_twice(big, big_expected):
    assert bits(evaluate(big)) == big_expected


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e250, 1e308])
def test_a_trajectory_does_not_see_the_magnitudes_of_the_next(tmp_path, size):
    log = skeleton([5, 11, 3, 8]).with_columns(reward=0.5, q_hat=0.25, v_hat=0.125, ratio=1.25)
    wild = (pl.col("episode") == 1) & (pl.col("step") == 0)
    log = log.with_columns(
        reward=pl.when(wild).then(size).otherwise("reward"),
        q_hat=pl.when(wild).then(-size).otherwise("q_hat"),
        ratio=pl.when(wild).then(min(size, 0.1)).otherwise("ratio"),
    )
    paths = [tmp_path / f"{episode}.parquet" for episode in range(4)]
    for episode, path in enumerate(paths):
        log.filter(pl.col("episode") == episode).write_parquet(path)
    whole = op.evaluate(log, estimators=["step-is", "dr", "wis"])
    apart = op.evaluate(paths, estimators=["step-is", "dr", "wis"])
    assert whole.values("dr").equals(apart.values("dr"))
    assert bits(whole) == bits(apart)


def test_weights_near_the_smallest_float_erase_no_earlier_term():
    """Episode 3 has its first value only: later steps have weights of 0 beside a huge 1 / D_t."""
    least = 5e-324
    log = pl.DataFrame(
        {
            "episode": [0, 1, 2] + [3] * 9,
            "step": [0, 0, 0, *range(9)],
            "behavior_prob": [1.0] * 12,
            "target_prob": [least, least, 0.0, 0.0] + [least] * 7 + [0.0],
            "reward": [0.0] * 12,
            "q_hat": [0.0] * 12,
            "v_hat": [0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0],
        }
    )
    influence = [
        op.evaluate(log.lazy(), estimators=["wdr"], batch_rows=rows)
        .samples.influence("target", "wdr")["value"]
        .to_list()
        for rows in (1, 4, 12)
    ]
    assert influence == [[-0.5, 0.5, 0.5, -0.5]] * 3
