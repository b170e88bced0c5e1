"""Every kind of log, episode id and column that is accepted gives the result of the plain frame."""

import duckdb
import numpy as np
import offpolicy as op
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from logs import bits, file_pieces, random_log, with_ratio

TWO_PASS = ["wis", "step-wis", "wdr", "magic"]


def evaluate(log, **more):
    return op.evaluate(log, discount=0.9, **more)


@pytest.fixture
def expected(log):
    return bits(evaluate(log))


class OnlyCapsule:
    """An object that has the Arrow stream and nothing else."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def one_shot(table, rows=3):
    return pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(max_chunksize=rows)))


def pyarrow_table(log):
    """With pyarrow's own types: no string views."""
    return pa.Table.from_pylist(log.to_dicts())


SOURCES = {
    "frame": lambda log, path: log,
    "lazy frame": lambda log, path: log.lazy(),
    "lazy query": lambda log, path: log.lazy().with_columns(reward=pl.col("reward") + 0.0),
    "parquet scan": lambda log, path: pl.scan_parquet(path),
    "path": lambda log, path: path,
    "text path": lambda log, path: str(path),
    "glob": lambda log, path: str(path.parent / "*.parquet"),
    "folder": lambda log, path: path.parent,
    "list": lambda log, path: [path],
    "list of text": lambda log, path: [str(path)],
    "table": lambda log, path: pyarrow_table(log),
    "chunked table": lambda log, path: pa.Table.from_batches(pyarrow_table(log).to_batches(max_chunksize=2)),
    "record batch": lambda log, path: pyarrow_table(log).combine_chunks().to_batches()[0],
    "dataset": lambda log, path: pyarrow.dataset.dataset(path),
    "in-memory dataset": lambda log, path: pyarrow.dataset.dataset(pyarrow_table(log)),
    "reader": lambda log, path: one_shot(pyarrow_table(log)),
    "capsule": lambda log, path: OnlyCapsule(pyarrow_table(log)),
    "one-shot capsule": lambda log, path: OnlyCapsule(one_shot(pyarrow_table(log))),
    "duckdb": lambda log, path: duckdb.sql(f"select * from '{path}'"),
    "pandas": lambda log, path: pd.DataFrame(log.to_dict(as_series=False)),
    "pandas of arrow": lambda log, path: pyarrow_table(log).to_pandas(types_mapper=pd.ArrowDtype),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_kind_of_log(log, log_file, expected, kind):
    assert bits(evaluate(SOURCES[kind](log, log_file))) == expected


@pytest.mark.parametrize("kind", SOURCES)
def test_every_kind_of_log_in_small_batches_with_values(log, log_file, kind):
    ev = evaluate(SOURCES[kind](log, log_file), batch_rows=4, estimators=["dr", *TWO_PASS])
    plain = evaluate(log)
    assert ev["magic"].value == plain["magic"].value
    for estimator in ("dr", "wis", "step-wis", "wdr"):
        values = ev.values(estimator)
        assert values["episode"].to_list() == log["episode"].unique(maintain_order=True).to_list()
        assert values["value"].to_list() == plain.values(estimator)["value"].to_list()


@pytest.mark.parametrize("estimator", TWO_PASS)
def test_a_reader_that_can_be_read_once_serves_two_passes(log, estimator):
    ev = evaluate(one_shot(log.to_arrow()), estimators=[estimator])
    assert ev[estimator].std_error == evaluate(log)[estimator].std_error


INTEGERS = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64]


def identified(log, ids):
    """The log with these ids instead, in order of appearance."""
    old = log["episode"].unique(maintain_order=True)
    new = ids if isinstance(ids, pl.Series) else pl.Series(ids)
    mapping = pl.DataFrame({"episode": old, "new": new[: len(old)]})
    joined = log.join(mapping, on="episode", how="left", maintain_order="left")
    return joined.with_columns(episode="new").drop("new")


def check_ids(log, ids, expected, tmp_path):
    renamed = identified(log, ids)
    path = tmp_path / "renamed.parquet"
    renamed.write_parquet(path, row_group_size=3)
    pieces = file_pieces(renamed, tmp_path / "pieces", range(0, renamed.height, 4))
    for source in (renamed, renamed.lazy(), path, pieces[::-1], renamed.to_arrow()):
        assert bits(evaluate(source)) == expected
    values = evaluate(renamed).values("dr")
    assert values["episode"].to_list() == renamed["episode"].unique(maintain_order=True).to_list()
    return values


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_ids_of_every_width(log, expected, tmp_path, dtype):
    ids = [5, 0, 127, 3, 100, 7, 1, 2]
    low = dtype.min() if dtype.is_signed_integer() else dtype.max()
    ids = pl.select(pl.Series(ids).cast(dtype)).to_series().to_list()
    ids[3] = pl.select(low).item()
    ids[4] = pl.select(dtype.max() - 1).item()
    check_ids(log, pl.Series(ids, dtype=dtype), expected, tmp_path)


def test_unsigned_ids_beyond_signed_ones_keep_apart(log, expected, tmp_path):
    ids = [2**63, 2**64 - 1, 0, 2**63 - 1, 1, 2**63 + 1, 2**64 - 2, 2**32]
    values = check_ids(log, pl.Series(ids, dtype=pl.UInt64), expected, tmp_path)
    assert values["episode"].max() == 2**64 - 1


TEXT = ["a", "", "ä long identifier of an episode", "A", "0", "00", "long identifier of an episode ä", "\n"]


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(TEXT)], ids=["text", "categorical", "enum"])
def test_text_ids_of_polars(log, expected, tmp_path, dtype):
    check_ids(log, pl.Series(TEXT, dtype=pl.String).cast(dtype), expected, tmp_path)


ARROW_TEXT = {
    "utf8": pa.string(),
    "large": pa.large_string(),
    "view": pa.string_view(),
    "dictionary8": pa.dictionary(pa.int8(), pa.string()),
    "dictionary32": pa.dictionary(pa.int32(), pa.large_string()),
    "dictionary of unsigned": pa.dictionary(pa.uint16(), pa.string()),
}


@pytest.mark.parametrize("kind", ARROW_TEXT)
def test_text_ids_of_arrow(log, expected, tmp_path, kind):
    table = pyarrow_table(identified(log, TEXT))
    position = table.schema.get_field_index("episode")
    column = pa.chunked_array([pa.array(table["episode"].to_pylist()).cast(ARROW_TEXT[kind])])
    table = table.set_column(position, "episode", column)
    assert table.schema.field("episode").type == ARROW_TEXT[kind]
    assert bits(evaluate(table)) == expected
    assert bits(evaluate(one_shot(table, rows=2))) == expected
    path = tmp_path / "text.parquet"
    pyarrow.parquet.write_table(table, path, row_group_size=5)
    assert bits(evaluate(path)) == expected


def test_dictionaries_that_change_from_batch_to_batch(log, expected):
    table = pyarrow_table(identified(log, TEXT))
    batches = [
        batch.set_column(0, "episode", batch["episode"].dictionary_encode())
        for batch in table.to_batches(max_chunksize=3)
    ]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    assert table.schema.get_field_index("episode") == 0
    assert bits(evaluate(reader)) == expected


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_steps_of_every_width(log, log_file, expected, dtype):
    narrow = log.with_columns(pl.col("step").cast(dtype))
    assert bits(evaluate(narrow)) == expected
    narrow.write_parquet(log_file)
    assert bits(evaluate(log_file)) == expected


@pytest.mark.parametrize("dtype", [pl.Float32, *INTEGERS], ids=str)
def test_columns_are_widened_without_loss(log, log_file, dtype):
    names = ["reward", "q_hat", "v_hat", "r_hat"]
    narrow = with_ratio(log).with_columns((pl.col(names) * 10).abs().round().cast(dtype))
    if dtype == pl.Float32:
        narrow = with_ratio(log).with_columns(pl.col([*names, "ratio", "transition_ratio"]).cast(dtype))
    wide = narrow.with_columns(pl.col(names).cast(pl.Float64))
    wide = wide.with_columns(pl.col("ratio", "transition_ratio").cast(pl.Float64))
    narrow.write_parquet(log_file)
    for source in (narrow, narrow.lazy(), log_file):
        assert bits(evaluate(source)) == bits(evaluate(wide))


def test_integer_probabilities(log):
    certain = log.with_columns(behavior_prob=pl.lit(1, pl.Int8), target_prob=pl.lit(1, pl.UInt32))
    ev = evaluate(certain, estimators=["mc", "step-is"])
    assert ev["step-is"].value == ev["mc"].value


def test_integers_up_to_the_last_exact_one():
    frame = pl.DataFrame({"episode": [1, 2], "step": [0, 0], "reward": [2**53, -(2**53)]})
    assert op.evaluate(frame)["mc"].value == 0.0


def test_files_globs_and_folders_together(log, expected, tmp_path):
    paths = file_pieces(log, tmp_path / "all", [7, 11, 20, 24])
    assert len(paths) == 5
    for name, path in zip(["one", "folder", "folder", "glob", "glob"], paths, strict=True):
        (tmp_path / name).mkdir(exist_ok=True)
        path.rename(tmp_path / name / path.name)
    mixed = [tmp_path / "one" / "part-000.parquet", tmp_path / "folder", str(tmp_path / "glob" / "*.parquet")]
    assert bits(evaluate(mixed)) == expected
    assert bits(evaluate(mixed[::-1])) == expected
    assert bits(evaluate(str(tmp_path / "**" / "*.parquet"))) == expected


def test_a_folder_of_pieces(log, expected, tmp_path):
    file_pieces(log, tmp_path / "log", [1, 2, 3, 15])
    assert bits(evaluate(tmp_path / "log")) == expected


@pytest.mark.parametrize("compression", ["uncompressed", "snappy", "gzip", "zstd", "lz4", "brotli"])
def test_compressions(log, expected, tmp_path, compression):
    path = tmp_path / "log.parquet"
    log.write_parquet(path, compression=compression)
    assert bits(evaluate(path)) == expected


@pytest.mark.parametrize("options", [{"version": "1.0"}, {"data_page_version": "2.0"}, {"use_dictionary": False}])
def test_parquet_versions(log, expected, tmp_path, options):
    path = tmp_path / "log.parquet"
    pyarrow.parquet.write_table(pyarrow_table(log), path, **options)
    assert bits(evaluate(path)) == expected


def test_columns_in_another_order_with_others_between(log, expected, log_file):
    more = log.select(pl.lit("x").alias("note"), pl.lit([1, 2]).alias("list"), *reversed(log.columns))
    more.write_parquet(log_file)
    assert bits(evaluate(more)) == expected
    assert bits(evaluate(log_file)) == expected


def test_files_with_their_columns_in_different_orders(log, expected, tmp_path):
    first, second = file_pieces(log, tmp_path, [13])
    pl.read_parquet(second).select(*reversed(log.columns)).write_parquet(second)
    assert bits(evaluate([first, second])) == expected


def test_slices_with_an_offset(log):
    expected = bits(evaluate(log))
    padded = pl.concat([log.with_columns(episode=pl.lit(-1, pl.Int64)), log])
    assert bits(evaluate(padded[log.height :])) == expected
    assert bits(evaluate(padded.to_arrow().slice(log.height))) == expected
    assert bits(evaluate(padded.to_arrow().slice(log.height).combine_chunks())) == expected


def test_polars_namespace(log, expected):
    assert bits(log.ope.evaluate(discount=0.9)) == expected
    assert bits(log.lazy().ope.evaluate(discount=0.9)) == expected


def test_a_frame_is_left_as_it_was(log):
    before = log.clone()
    evaluate(log)
    assert log.equals(before)


def test_the_order_of_the_values_is_the_order_of_the_log():
    log = random_log(51, episodes=20)
    values = evaluate(log).values("mc")
    ids = log["episode"].unique(maintain_order=True)
    assert values["episode"].to_list() == ids.to_list()
    assert not np.array_equal(ids.to_numpy(), np.sort(ids.to_numpy()))
    assert values["value"].mean() == pytest.approx(evaluate(log)["mc"].value, rel=1e-14)


@pytest.mark.parametrize("order", ["sorted", "any"])
@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize("column", ["truncated", "q_hat", "transition_ratio"])
def test_a_column_that_only_some_files_have_is_refused_in_any_order_of_files(log, tmp_path, column, turn, order):
    whole = log.with_columns(truncated=pl.lit(False), transition_ratio=pl.lit(1.0))
    paths = [tmp_path / "with.parquet", tmp_path / "without.parquet"]
    cut = log.height // 2
    whole[:cut].write_parquet(paths[0])
    whole[cut:].drop(column).write_parquet(paths[1])
    with pytest.raises(op.BadFileError, match=rf"without\.parquet: it has no column '{column}', which .*with\.parquet"):
        op.evaluate(paths[::turn], order=order)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": {"reward": "gain"}}, r"columns= takes Columns"),
        ({"policies": {"new": "p"}}, r"policy 'new' takes PolicyColumns\(target_prob='p'\), not str"),
        ({"policies": ["p"]}, "policies= takes a mapping"),
        ({"discount": "0.9"}, "discount must be between 0 and 1, not '0.9'"),
        ({"horizon": True}, "horizon must be a whole number"),
    ],
)
def test_arguments_of_the_wrong_type_are_refused_in_our_words(log, arguments, message):
    with pytest.raises(op.UsageError, match=message):
        op.evaluate(log, **arguments)


def test_a_column_may_have_a_dot_in_its_name(log, tmp_path):
    dotted = log.rename({"reward": "gain.net"}).with_columns(gain=0.0)
    path = tmp_path / "log.parquet"
    dotted.write_parquet(path)
    columns = op.Columns(reward="gain.net")
    for source in (dotted, dotted.lazy(), path):
        assert bits(op.evaluate(source, columns=columns)) == bits(op.evaluate(log))
