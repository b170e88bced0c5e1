"""`op.pool`: several logs as one, with ids that cannot meet."""

import offpolicy as op
import polars as pl
import pytest
from polars.testing import assert_frame_equal

V1, V2 = op.demo_log(episodes=30, seed=1), op.demo_log(episodes=50, seed=2)


def test_ids_stay_apart_and_every_row_names_its_log():
    log = op.pool({"v1": V1, "v2": V2})
    assert log.height == V1.height + V2.height
    assert log["episode"].n_unique() == 80
    assert log.group_by("logger", maintain_order=True).len().rows() == [("v1", V1.height), ("v2", V2.height)]
    assert_frame_equal(log.drop("episode", "logger"), pl.concat([V1, V2]).drop("episode"))


def test_the_estimate_is_the_mean_over_all_episodes():
    mine, theirs = (op.evaluate(log, estimators=["step-is"])["step-is"].value for log in (V1, V2))
    pooled = op.evaluate(op.pool({"v1": V1, "v2": V2}), estimators=["step-is"])["step-is"].value
    assert pooled == pytest.approx((30 * mine + 50 * theirs) / 80, rel=1e-12)


def test_one_log_twice_is_twice_as_many_episodes():
    assert op.evaluate(op.pool({"a": V1, "b": V1}), estimators=["mc"]).episodes == 60


def test_files_and_queries_stay_lazy_and_give_the_same_rows(tmp_path):
    V1.write_parquet(tmp_path / "v1.parquet")
    eager = op.pool({"v1": V1, "v2": V2})
    for first in (str(tmp_path / "v1.parquet"), tmp_path, V1.lazy()):
        lazy = op.pool({"v1": first, "v2": V2})
        assert isinstance(lazy, pl.LazyFrame)
        assert_frame_equal(lazy.collect(), eager)
        assert op.evaluate(lazy)["step-is"].value == op.evaluate(eager)["step-is"].value


def test_a_stream_that_can_be_read_once_outlives_its_source():
    class Once:
        def __init__(self):
            self.used = False

        def __arrow_c_stream__(self, requested_schema=None):
            assert not self.used
            self.used = True
            return V1.__arrow_c_stream__(requested_schema)

    pooled = op.pool({"v1": Once(), "v2": V2})
    assert_frame_equal(
        pooled.select("episode", "reward").collect(), op.pool({"v1": V1, "v2": V2}).select("episode", "reward")
    )


def test_types_are_widened_without_loss():
    log = op.pool({"v1": V1.with_columns(pl.col("reward").cast(pl.Float32)), "v2": V2})
    assert log.schema["reward"] == pl.Float64
    text = V2.with_columns(pl.col("episode").cast(pl.String))
    assert op.pool({"v1": V1, "v2": text})["episode"].n_unique() == 80


def test_other_names_of_columns():
    log = op.pool({"a": V1.rename({"episode": "visit"})}, columns=op.Columns(episode="visit"), logger="site")
    assert log["visit"][0] == "a/0"
    assert log["site"].unique().to_list() == ["a"]


BAD = {
    "a list": (lambda: [V1, V2], "logs by name"),
    "nothing": (dict, "logs by name"),
    "a name that could be two": (lambda: {"a/b": V1}, "a text without '/'"),
    "a number": (lambda: {1: V1}, "a text without '/'"),
    "no episode": (lambda: {"a": V1.drop("episode")}, "log 'a' has no column 'episode'"),
    "pooled before": (lambda: {"a": V1.with_columns(logger=pl.lit("x"))}, "has a column 'logger' already"),
    "a column of the first alone": (
        lambda: {"a": V1.with_columns(truncated=False), "b": V2},
        "log 'b' has no column 'truncated', which 'a' has",
    ),
    "a column of the second alone": (
        lambda: {"a": V1, "b": V2.with_columns(truncated=False)},
        "log 'a' has no column 'truncated', which 'b' has",
    ),
    "types that do not fit": (
        lambda: {"a": V1, "b": V2.with_columns(reward=pl.lit("x"))},
        "column 'reward' is String in log 'b' and Float64 before",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_pooled_is_refused(case):
    make, says = BAD[case]
    with pytest.raises(op.OffPolicyError, match=says):
        op.pool(make())
