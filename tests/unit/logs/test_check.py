"""`op.check` lists what is wrong with a log, all of it, and says so when nothing is."""

import math

import offpolicy as op
import polars as pl
import pytest
from logs import file_pieces, random_log


@pytest.fixture
def log():
    return random_log(81, episodes=6, horizon=4, ragged=False)


@pytest.fixture
def bad(log):
    """Five problems in four episodes, with the ids of the log."""
    ids = log["episode"].unique(maintain_order=True)
    at = [(pl.col("episode") == e) & (pl.col("step") == s) for e, s in zip(ids, (0, 1, 2, 3, 1, 2), strict=True)]
    frame = log.with_columns(
        reward=pl.when(at[0]).then(math.nan).otherwise("reward"),
        behavior_prob=pl.when(at[1]).then(0.0).when(at[3]).then(2.0).otherwise("behavior_prob"),
        target_prob=pl.when(at[1]).then(-1.0).otherwise("target_prob"),
    ).filter(~at[4])
    expected = {
        ("nan", ids[0], 0, "reward"),
        ("not-positive", ids[1], 1, "behavior_prob"),
        ("negative", ids[1], 1, "target_prob"),
        ("above-one", ids[3], 3, "behavior_prob"),
    }
    return frame, expected, ids[4]


def test_a_good_log_is_said_to_be_good(log, log_file):
    for source in (log, log.lazy(), log_file, log.to_arrow()):
        report = op.check(source)
        assert report.ok
        assert report.problems == []
        assert report.table.height == 0
        assert "no problem" in str(report).lower()


def test_all_problems_are_listed(bad, tmp_path):
    frame, expected, gap = bad
    path = tmp_path / "bad.parquet"
    frame.write_parquet(path, row_group_size=5)
    for source in (frame, frame.lazy(), path):
        report = op.check(source)
        assert not report.ok
        cells = {(p.kind, p.episode, p.step, p.column) for p in report.problems if p.kind != "gap"}
        assert cells == expected
        assert [p.episode for p in report.problems if p.kind == "gap"] == [gap]
        assert report.table.height == len(report.problems)
        text = str(report)
        for kind, episode, _, column in expected:
            assert str(episode) in text
            assert column in text or kind in text


def test_problems_name_their_file(bad, tmp_path):
    frame, _, _ = bad
    paths = file_pieces(frame, tmp_path, [6, 10, 15])
    problems = op.check(paths).problems
    names = {str(p.file).rsplit("/", 1)[-1] for p in problems}
    assert names <= {path.name for path in paths}
    assert len(names) > 1


def test_problems_come_in_the_order_of_the_log_whatever_the_threads(bad, tmp_path):
    frame, _, _ = bad
    path = tmp_path / "bad.parquet"
    frame.write_parquet(path, row_group_size=2)
    once = op.check(path, threads=1).table
    assert once["row"].is_sorted()
    for threads in (2, 3, 8):
        assert op.check(path, threads=threads).table.equals(once)


def test_problems_of_the_first_episode_come_first(log):
    early = log.with_columns(pl.col("step") - 1)
    problems = op.check(early).problems
    assert [p.row for p in problems] == [0, 4, 8, 12, 16, 20]
    assert {p.kind for p in problems} == {"first-step"}


def test_the_row_and_the_step_of_a_problem_belong_together(log):
    bad = log[[*range(2), *range(4, 24), 2, 3]]
    problems = op.check(bad).problems
    assert {p.kind for p in problems} >= {"reappears"}
    assert {bad["step"][p.row] == p.step for p in problems} == {True}


def test_the_list_is_cut_at_the_limit(log):
    broken = log.with_columns(reward=pl.lit(math.nan))
    report = op.check(broken, limit=5)
    assert len(report.problems) == 5
    assert not report.ok
    assert len(op.check(broken).problems) == broken.height


def test_evaluate_reports_what_check_reports(bad):
    frame, _, _ = bad
    with pytest.raises(op.BadLogError) as caught:
        op.evaluate(frame)
    assert {p.message for p in caught.value.problems} == {p.message for p in op.check(frame).problems}


def test_all_columns_of_the_design_are_checked(log):
    for column in ("q_hat", "v_hat", "r_hat", "transition_ratio"):
        broken = log.with_columns(pl.when(pl.col("step") == 2).then(None).otherwise(column).alias(column))
        problems = op.check(broken).problems
        assert {(p.kind, p.column, p.step) for p in problems} == {("null", column, 2)}
        assert len(problems) == 6


def test_columns_of_policies_are_checked(log):
    broken = log.with_columns(pa=pl.lit(2.0))
    report = op.check(broken, policies={"a": op.PolicyColumns(target_prob="pa")})
    assert {(p.kind, p.column) for p in report.problems} == {("above-one", "pa")}


def test_density_and_horizon_are_heeded(log):
    dense = log.with_columns(behavior_prob=pl.lit(3.0))
    assert not op.check(dense).ok
    assert op.check(dense, density=True).ok
    assert {p.kind for p in op.check(log, horizon=3).problems} == {"too-long"}


def test_truncation_is_a_problem_too(log):
    short = log.filter(pl.col("step") < 3)
    cut = pl.concat([log[:4], short.filter(pl.col("episode") != log["episode"][0])])
    cut = cut.with_columns(truncated=(pl.col("step") == 2) & (pl.col("episode") == log["episode"][-1]))
    problems = op.check(cut).problems
    assert [(p.kind, p.episode, p.step) for p in problems] == [("truncated", log["episode"][-1], 2)]


def test_a_shuffled_log_is_checked_for_everything_else(log):
    shuffled = log.sample(fraction=1, shuffle=True, seed=3)
    assert op.check(shuffled, order="any").ok
    bad = shuffled.with_columns(
        reward=pl.when((pl.col("episode") == log["episode"][0]) & (pl.col("step") == 0))
        .then(float("nan"))
        .otherwise("reward")
    )
    report = op.check(bad, order="any")
    assert [(p.kind, p.step, p.row) for p in report.problems] == [("nan", 0, None)]


def test_rows_that_are_there_twice_can_be_dropped_before_the_look(log):
    twice = pl.concat([log, log[:1]])
    assert op.check(twice, order="any").kinds[0].kind == "duplicate"
    assert op.check(twice, dedupe="identical").ok
