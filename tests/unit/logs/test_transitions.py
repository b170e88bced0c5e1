"""The steps of a log as a fitter reads them: one answer for every kind of log, every cut and both ways to write s'."""

import duckdb
import numpy as np
import offpolicy as op
import polars as pl
import pyarrow.dataset
import pytest
from offpolicy.logs.transitions import transitions
from offpolicy.testing import Walk

WALK = Walk()
LOG = WALK.simulate(WALK.behavior, 40, seed=3)
FIELDS = ("episodes", "steps", "states", "actions", "rewards", "next_states", "terminal", "known")


def read(log, domain=WALK, **more):
    """All batches as one, each field as an array."""
    parts = list(transitions(log, domain, **more))
    return {name: np.concatenate([np.asarray(getattr(part, name)) for part in parts]) for name in FIELDS}


def same(found, expected, unknown_too=True):
    """Equal in all rows; where a transition does not count, s' may be anything."""
    rows = slice(None) if unknown_too else expected["known"] & ~expected["terminal"]
    return all(
        np.array_equal(found[name], expected[name]) for name in FIELDS if name != "next_states"
    ) and np.array_equal(found["next_states"][rows], expected["next_states"][rows])


KINDS = {
    "lazy frame": lambda frame, path: frame.lazy(),
    "scan": lambda frame, path: pl.scan_parquet(path),
    "path": lambda frame, path: path,
    "list": lambda frame, path: [str(path)],
    "folder": lambda frame, path: path.parent,
    "arrow table": lambda frame, path: frame.to_arrow(),
    "pandas": lambda frame, path: frame.to_pandas(),
    "dataset": lambda frame, path: pyarrow.dataset.dataset(path),
    "relation": lambda frame, path: duckdb.sql(f"select * from '{path}'"),
    "reader": lambda frame, path: pyarrow.dataset.dataset(path).scanner().to_reader(),
}


@pytest.mark.parametrize("batch_rows", [7, 1000])
@pytest.mark.parametrize("with_next", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_log_gives_the_same(kind, with_next, batch_rows, tmp_path):
    frame = LOG if with_next else LOG.drop("next_place")
    path = tmp_path / "log.parquet"
    frame.write_parquet(path, row_group_size=13)
    assert same(read(KINDS[kind](frame, path), batch_rows=batch_rows), read(frame))


def test_what_is_read_is_what_happened():
    found = read(LOG)
    assert np.array_equal(found["states"], LOG.select("place").to_numpy())
    assert np.array_equal(found["next_states"], LOG.select("next_place").to_numpy())
    for name, column in (("steps", "step"), ("actions", "action"), ("rewards", "reward"), ("terminal", "terminal")):
        assert np.array_equal(found[name], LOG[column])
    assert found["known"].all()


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 5, 1000])
def test_the_next_state_is_found_in_the_next_row(batch_rows):
    shifted = read(LOG.drop("next_place"), batch_rows=batch_rows)
    expected = read(LOG)
    last_by_horizon = (expected["steps"] == WALK.horizon - 1) & ~expected["terminal"]
    assert last_by_horizon.any()
    assert np.array_equal(shifted["known"], ~last_by_horizon)
    expected["known"] = ~last_by_horizon
    assert same(shifted, expected, unknown_too=False)


@pytest.mark.parametrize("batch_rows", [1, 4, 1000])
def test_without_terminal_a_short_episode_has_ended(batch_rows):
    bare = read(LOG.drop("next_place", "terminal"), batch_rows=batch_rows)
    known = read(LOG.drop("next_place"))
    at_horizon = known["steps"] == WALK.horizon - 1
    assert np.array_equal(bare["terminal"][~at_horizon], known["terminal"][~at_horizon])
    assert not bare["terminal"][at_horizon].any()


@pytest.mark.parametrize("drop", [[], ["next_place"], ["next_place", "terminal"]])
def test_steps_may_count_from_one(drop):
    log = LOG.drop(drop)
    assert same(read(log.with_columns(pl.col("step") + 1), batch_rows=5), read(log))


def test_a_log_may_begin_inside_an_episode_if_it_has_the_next_states():
    parts = [LOG[3:], LOG[:3]]
    found = read(pl.concat(parts))
    assert np.array_equal(found["steps"], np.concatenate([part["step"].to_numpy() for part in parts]))


def test_rows_out_of_order_are_an_error_where_the_next_row_has_the_next_state():
    torn = pl.concat([LOG[3:], LOG[:3]]).drop("next_place")
    with pytest.raises(op.BadLogError) as caught:
        read(torn)
    assert (caught.value.problems[0].kind, caught.value.problems[0].step) == ("out-of-order", 3)
    missing = pl.concat([LOG[:1], LOG[2:]]).drop("next_place")
    for batch_rows in (1, 2, 1000):
        with pytest.raises(op.BadLogError, match="row 1, episode 0, step 2: step = 2"):
            read(missing, batch_rows=batch_rows)


def test_episodes_may_be_text():
    text = LOG.with_columns(pl.format("user-{}", "episode").alias("episode"))
    found, expected = read(text.drop("next_place"), batch_rows=3), read(LOG.drop("next_place"))
    assert found["episodes"][0] == "user-0"
    assert all(np.array_equal(found[name], expected[name]) for name in FIELDS if name != "episodes")


def test_columns_may_have_other_names():
    log = LOG.rename({"place": "where", "next_place": "next_where", "action": "move"})
    assert same(read(log, columns=op.Columns(state=("where",), action="move")), read(LOG))


def test_several_state_columns_of_several_types():
    setting = op.LoggedDomain(("a", "b"), 2, 5, (0.0, 1.0))
    log = pl.DataFrame(
        {"episode": [0, 0], "step": [0, 1], "a": [1, 2], "b": [0.5, 0.25], "action": [0, 1], "reward": [0, 1]}
    )
    found = read(log, setting)
    assert found["states"].tolist() == [[1, 0.5], [2, 0.25]]
    assert found["next_states"][0].tolist() == [2, 0.25]
    assert found["terminal"].tolist() == [False, True]
    assert found["rewards"].dtype == np.float64


BAD = {
    "a null reward": (pl.when(pl.col("episode") == 2).then(None).otherwise("reward"), "reward", "None"),
    "a NaN reward": (pl.when(pl.col("episode") == 2).then(float("nan")).otherwise("reward"), "reward", "nan"),
    "an infinite reward": (pl.when(pl.col("episode") == 2).then(float("inf")).otherwise("reward"), "reward", "inf"),
    "a null state": (pl.when(pl.col("episode") == 2).then(None).otherwise("place"), "place", "None"),
    "a null next state": (pl.when(pl.col("episode") == 2).then(None).otherwise("next_place"), "next_place", "None"),
    "a null terminal": (pl.when(pl.col("episode") == 2).then(None).otherwise("terminal"), "terminal", "None"),
    "a null action": (pl.when(pl.col("episode") == 2).then(None).otherwise("action"), "action", "None"),
    "an action too high": (pl.when(pl.col("episode") == 2).then(3).otherwise("action"), "action", "3"),
    "an action below 0": (pl.when(pl.col("episode") == 2).then(-1).otherwise("action"), "action", "-1"),
}


@pytest.mark.parametrize("batch_rows", [4, 1000])
@pytest.mark.parametrize("case", BAD)
def test_a_bad_value_is_named(case, batch_rows):
    spoil, column, value = BAD[case]
    with pytest.raises(op.BadLogError) as caught:
        read(LOG.with_columns(spoil.alias(column)), batch_rows=batch_rows)
    row = int((LOG["episode"] == 2).arg_max())
    first = caught.value.problems[0]
    assert (first.row, first.episode, first.step, first.column, first.value) == (row, 2, 0, column, value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda log: log.drop("terminal"), "next states but no column 'terminal'"),
        (lambda log: log.drop("action"), "no column 'action'"),
        (lambda log: log.drop("place"), r"no column 'place' \(of the state\); did you mean 'next_place'"),
        (lambda log: log.with_columns(pl.col("action").cast(float)), "'action' must hold whole numbers, not Float64"),
        (lambda log: log.with_columns(pl.col("step").cast(float)), "'step' must hold whole numbers, not Float64"),
        (lambda log: log.with_columns(pl.col("place").cast(str)), "'place' must hold numbers, not String"),
        (lambda log: log.with_columns(pl.col("reward").cast(str)), "'reward' must hold numbers, not String"),
        (
            lambda log: log.with_columns(pl.col("terminal").cast(float)),
            "'terminal' must hold true and false, not Float64",
        ),
    ],
)
def test_a_column_of_another_kind_is_refused(change, says):
    kind = op.WrongTypeError if "must hold" in says else op.MissingColumnError
    with pytest.raises(kind, match=says):
        read(change(LOG))


def test_an_empty_log_has_no_transition():
    assert [len(part.actions) for part in transitions(LOG[:0], WALK)] in ([], [0])
