"""Bad rows are refused with file, episode, step, column and value, all of them at once."""

import math
import re

import offpolicy as op
import polars as pl
import pytest
from logs import bits, random_log, speaking_log, with_ratio

EPSILON = 2.0**-52
NAN, INF = math.nan, math.inf


@pytest.fixture
def log():
    return speaking_log()


def spoiled(log, column, value, episode=202, step=1):
    """One cell changed."""
    here = (pl.col("episode") == episode) & (pl.col("step") == step)
    return log.with_columns(pl.when(here).then(pl.lit(value)).otherwise(pl.col(column)).alias(column))


def problems_of(log, **arguments):
    with pytest.raises(op.BadLogError) as caught:
        op.evaluate(log, **arguments)
    return caught.value.problems, str(caught.value)


BAD_CELLS = [
    ("behavior_prob", 0.0, "not-positive"),
    ("behavior_prob", -0.25, "not-positive"),
    ("behavior_prob", 1.5, "above-one"),
    ("behavior_prob", 1 + 8 * EPSILON, "above-one"),
    ("behavior_prob", NAN, "nan"),
    ("behavior_prob", INF, "infinite"),
    ("behavior_prob", None, "null"),
    ("target_prob", -0.25, "negative"),
    ("target_prob", 1.5, "above-one"),
    ("target_prob", 1 + 8 * EPSILON, "above-one"),
    ("target_prob", NAN, "nan"),
    ("target_prob", INF, "infinite"),
    ("target_prob", -INF, "infinite"),
    ("target_prob", None, "null"),
    *[
        (column, value, kind)
        for column in ("reward", "q_hat", "v_hat", "r_hat", "transition_ratio")
        for value, kind in [(NAN, "nan"), (INF, "infinite"), (-INF, "infinite"), (None, "null")]
    ],
    ("transition_ratio", -0.25, "negative"),
]


@pytest.mark.parametrize(("column", "value", "kind"), BAD_CELLS)
def test_a_bad_cell_is_named(log, tmp_path, column, value, kind):
    bad = spoiled(log, column, value)
    path = tmp_path / "bad.parquet"
    bad.write_parquet(path, row_group_size=2)
    for source in (bad, bad.lazy(), path, bad.to_arrow()):
        problems, message = problems_of(source)
        assert [(p.kind, p.episode, p.step, p.column) for p in problems] == [(kind, 202, 1, column)]
        for word in (column, "202", "step 1"):
            assert word in message
        if value is not None and math.isfinite(value):
            assert float(problems[0].value) == value
            assert f"{column} = {str(value).removesuffix('.0')}" in message
        assert problems[0].message in message
    problems, message = problems_of(path)
    assert str(problems[0].file).endswith("bad.parquet")
    assert "bad.parquet" in message


@pytest.mark.parametrize("value", [NAN, INF, -0.5, None])
def test_a_bad_ratio_is_named(log, value):
    problems, message = problems_of(spoiled(with_ratio(log), "ratio", value))
    assert [(p.episode, p.step, p.column) for p in problems] == [(202, 1, "ratio")]
    assert problems[0].kind in {"nan", "infinite", "negative", "null"}
    assert "ratio" in message


@pytest.mark.parametrize("column", ["episode", "step"])
def test_a_null_in_the_keys_is_named(log, column):
    problems, message = problems_of(spoiled(log, column, None))
    assert ("null", column) in {(p.kind, p.column) for p in problems}
    assert "null" in message


@pytest.mark.parametrize("column", ["behavior_prob", "target_prob"])
def test_a_probability_may_exceed_one_by_rounding(log, column):
    assert op.evaluate(spoiled(log, column, 1 + 4 * EPSILON)).episodes == 4


def test_densities_may_exceed_one(log):
    dense = spoiled(spoiled(log, "behavior_prob", 3.5), "target_prob", 7.0)
    assert op.evaluate(dense, density=True)["step-is"].value == pytest.approx(
        op.evaluate(with_ratio(dense))["step-is"].value, rel=1e-12
    )
    problems, _ = problems_of(spoiled(dense, "behavior_prob", 0.0), density=True)
    assert problems[0].kind == "not-positive"


def test_a_target_probability_of_zero_is_valid(log):
    ev = op.evaluate(spoiled(log, "target_prob", 0.0, step=0), estimators=["step-is"])
    assert ev.values("step-is")["value"][1] == 0.0


@pytest.mark.parametrize("column", ["q_hat", "v_hat", "r_hat", "transition_ratio", "target_prob"])
def test_a_column_that_is_not_used_may_hold_anything(log, column):
    bad = spoiled(log, column, NAN)
    assert op.evaluate(bad, estimators=["mc"])["mc"].value == op.evaluate(log)["mc"].value


def test_all_problems_come_at_once(log):
    bad = spoiled(log, "reward", NAN, 101, 0)
    bad = spoiled(bad, "behavior_prob", 0.0, 303, 1)
    bad = spoiled(bad, "q_hat", None, 404, 3)
    problems, message = problems_of(bad)
    assert {(p.kind, p.episode, p.step, p.column) for p in problems} == {
        ("nan", 101, 0, "reward"),
        ("not-positive", 303, 1, "behavior_prob"),
        ("null", 404, 3, "q_hat"),
    }
    for word in ("101", "303", "404", "reward", "behavior_prob", "q_hat"):
        assert word in message


def test_a_thousand_problems_are_cut_to_a_limit_and_counted():
    bad = random_log(62, episodes=3000, horizon=1).with_columns(reward=pl.lit(NAN))
    problems, message = problems_of(bad)
    assert 0 < len(problems) <= 3000
    assert len(message) < 100_000


def rows(log, *indices):
    return log[list(indices)]


STRUCTURE = {
    "gap": (rows, [0, 1, 3, 4, 5, 6], {"gap"}, 101),
    "gap at the start": (rows, [0, 1, 2, 3, 5, 6, 7, 8], {"first-step"}, 202),
    "duplicate": (rows, [0, 1, 1, 2, 3, 4, 5, 6], {"duplicate"}, 101),
    "duplicate at the start": (rows, [0, 0, 1, 2, 3], {"duplicate"}, 101),
    "duplicate at the end": (rows, [0, 1, 2, 3, 3, 4, 5, 6], {"duplicate"}, 101),
    "swapped steps": (rows, [0, 2, 1, 3, 4, 5, 6], {"unsorted", "gap"}, 101),
    "reversed": (rows, [0, 1, 2, 3, 6, 5, 4], {"unsorted", "first-step"}, 202),
    "reappears": (rows, [0, 1, 4, 5, 6, 2, 3], {"reappears"}, 101),
    "reappears from the start": (rows, [0, 1, 2, 3, 4, 5, 6, 0, 1], {"reappears", "duplicate"}, 101),
}


@pytest.mark.parametrize("case", STRUCTURE)
def test_broken_structure_is_named(log, tmp_path, case):
    change, indices, kinds, episode = STRUCTURE[case]
    bad = change(log, *indices)
    path = tmp_path / "bad.parquet"
    bad.write_parquet(path, row_group_size=2)
    for source in (bad, bad.lazy(), path):
        problems, message = problems_of(source)
        assert {p.kind for p in problems} <= {*kinds, "gap", "unsorted", "first-step"}
        assert {p.kind for p in problems} & kinds
        assert {p.episode for p in problems} == {episode}
        assert str(episode) in message
    assert "bad.parquet" in message


@pytest.mark.parametrize("shift", [1, -1, 2])
def test_all_episodes_begin_with_the_same_step(log, shift):
    here = pl.col("episode") == 303
    bad = log.with_columns(step=pl.when(here).then(pl.col("step") + shift).otherwise("step"))
    problems, message = problems_of(bad)
    assert {p.kind for p in problems} == {"first-step"}
    assert {p.episode for p in problems} == {303}
    assert "303" in message


@pytest.mark.parametrize("shift", [2, -1, 10])
def test_steps_begin_with_zero_or_one(log, shift):
    problems, _ = problems_of(log.with_columns(pl.col("step") + shift))
    assert {p.kind for p in problems} == {"first-step"}


def test_an_episode_longer_than_the_horizon_is_named(log):
    problems, message = problems_of(log, horizon=3)
    assert {p.kind for p in problems} == {"too-long"}
    assert {p.episode for p in problems} == {101, 404}
    assert "101" in message
    assert op.evaluate(log, horizon=4).horizon == 4


def test_an_integer_that_no_float_can_hold_is_named(log):
    for value in (2**53 + 1, -(2**53) - 1, 2**62):
        bad = spoiled(log.with_columns(reward=pl.lit(1, pl.Int64)), "reward", value)
        problems, message = problems_of(bad)
        assert [(p.kind, p.episode, p.step, p.column) for p in problems] == [("inexact-integer", 202, 1, "reward")]
        assert str(value) in message


WRONG = {
    "text reward": ("reward", pl.String),
    "text step": ("step", pl.String),
    "fractional step": ("step", pl.Float64),
    "fractional episode": ("episode", pl.Float64),
    "date episode": ("episode", pl.Date),
    "text probability": ("behavior_prob", pl.String),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_dtype_is_refused_by_name(log, tmp_path, case):
    column, dtype = WRONG[case]
    bad = log.with_columns(pl.col(column).cast(pl.Int32 if dtype == pl.Date else dtype).cast(dtype))
    path = tmp_path / "bad.parquet"
    bad.write_parquet(path)
    for source in (bad, bad.lazy(), path):
        with pytest.raises(op.OffPolicyError, match=column):
            op.evaluate(source)


@pytest.mark.parametrize("column", ["episode", "step", "reward"])
def test_a_missing_column_is_named(log, column):
    with pytest.raises(op.MissingColumnError, match=column):
        op.evaluate(log.drop(column))


@pytest.mark.parametrize(
    ("estimator", "column"),
    [
        ("step-is", "target_prob"),
        ("wis", "behavior_prob"),
        ("dr", "q_hat"),
        ("reg", "v_hat"),
        ("dr-v2", "r_hat"),
    ],
)
def test_an_estimator_without_its_column_says_which(log, estimator, column):
    with pytest.raises(op.MissingColumnError, match=column) as caught:
        op.evaluate(log.drop(column), estimators=[estimator])
    assert estimator in str(caught.value)


def test_a_renamed_column_that_is_absent_is_an_error(log):
    with pytest.raises(op.MissingColumnError, match="rewrd"):
        op.evaluate(log, columns=op.Columns(reward="rewrd"))
    with pytest.raises(op.MissingColumnError, match="qq"):
        op.evaluate(log, columns=op.Columns(q_hat="qq"))


@pytest.mark.parametrize("empty", [lambda log: log[:0], lambda log: log[:0].lazy(), lambda log: log[:0].to_arrow()])
def test_an_empty_log_is_refused(log, empty):
    with pytest.raises(op.OffPolicyError, match=r"empty|no rows"):
        op.evaluate(empty(log))


def test_an_empty_file_is_refused_alone_and_harmless_in_company(log, tmp_path):
    empty, full = tmp_path / "empty.parquet", tmp_path / "full.parquet"
    log[:0].write_parquet(empty)
    log.write_parquet(full)
    with pytest.raises(op.OffPolicyError, match=r"empty|no rows"):
        op.evaluate(empty)
    assert bits(op.evaluate([empty, full])) == bits(op.evaluate([full, empty])) == bits(op.evaluate(log))


@pytest.mark.parametrize("estimator", ["wis", "step-wis", "wdr", "magic"])
def test_weights_that_are_all_zero_leave_weighted_estimators_undefined(log, estimator):
    zero = log.with_columns(target_prob=pl.when(pl.col("step") == 1).then(0.0).otherwise("target_prob"))
    with pytest.raises(op.OffPolicyError, match=estimator) as caught:
        op.evaluate(zero, estimators=[estimator])
    assert "zero" in str(caught.value)
    if estimator != "wis":
        assert re.search(r"\bt ?= ?2\b", str(caught.value))


def test_weights_that_are_all_zero_leave_importance_sampling_at_zero_without_an_interval(log):
    ev = op.evaluate(log.with_columns(target_prob=0.0), estimators=["is", "step-is"])
    for estimator in ("is", "step-is"):
        estimate = ev[estimator]
        assert estimate.value == 0.0
        assert (estimate.low, estimate.high) == (None, None)
        assert "zero" in estimate.reason


def test_one_huge_weight_is_computed_and_the_verdict_says_so():
    plain = random_log(63, episodes=500, horizon=2).with_columns(behavior_prob=0.5, target_prob=0.5)
    good = op.evaluate(plain, estimators=["step-is"])
    huge = (pl.col("episode") == plain["episode"][0]) & (pl.col("step") == 0)
    heavy = plain.with_columns(behavior_prob=pl.when(huge).then(1e-9).otherwise("behavior_prob"))
    bad = op.evaluate(heavy, estimators=["step-is"])
    assert math.isfinite(bad["step-is"].value)
    assert bad["step-is"].ess < 2
    assert good.verdict.level == "reliable"
    assert bad.verdict.level == "unusable"
    assert bad.verdict.rule


def test_the_number_of_problems_does_not_depend_on_how_many_are_listed():
    log = random_log(5, episodes=30)
    twice = pl.concat([log, log])
    found = {op.check(twice, limit=limit).found for limit in (1, 3, 29, 30, 1000)}
    assert found == {30}
    cut = log.with_columns(truncated=pl.col("step") == pl.col("step").max().over("episode"))
    found = {op.check(cut, limit=limit, horizon=99).found for limit in (1, 7, 1000)}
    assert found == {30}


def test_a_problem_names_the_row_where_it_is():
    log = random_log(5, episodes=6, horizon=5).with_row_index("row")
    last = log.group_by("episode", maintain_order=True).last()
    cut = log.with_columns(truncated=pl.col("row") == last["row"][3])
    problem = op.check(cut, horizon=99).problems[0]
    assert (problem.row, problem.step) == (last["row"][3], last["step"][3])
    long = log.filter(pl.col("step") >= 2)[0]
    (problem, *_) = op.check(log, horizon=2).problems
    assert (problem.row, problem.episode, problem.step, problem.value) == (
        long["row"].item(),
        long["episode"].item(),
        2,
        "2",
    )
    again = pl.concat([log, log.filter(pl.col("episode") == log["episode"][0])])
    (problem,) = op.check(again).problems
    assert (problem.kind, problem.row) == ("reappears", log.height)
    neighbours = op.demo_log(episodes=3)  # consecutive ids are kept as one range, without the rows of each
    (problem, *_) = op.check(pl.concat([neighbours, neighbours])).problems
    assert (problem.kind, problem.row) == ("reappears", None)


@pytest.mark.parametrize("baseline", [None, 0.5])
@pytest.mark.parametrize("cut", [1, 4, 5, 6, 7])
def test_an_episode_beyond_the_horizon_is_refused_wherever_it_is_cut(tmp_path, cut, baseline):
    log = random_log(3, episodes=2, horizon=8, ragged=False)
    paths = [tmp_path / f"{i}.parquet" for i in range(2)]
    for part, path in zip((log[:cut], log[cut:]), paths, strict=True):
        part.write_parquet(path)
    for source in (log, paths, paths[::-1], log.lazy()):
        with pytest.raises(op.BadLogError) as caught:
            op.evaluate(source, horizon=5, baseline=baseline, batch_rows=cut)
        assert {problem.kind for problem in caught.value.problems} == {"too-long"}
        assert {problem.step for problem in caught.value.problems} == {5}
        assert not op.check(source, horizon=5).ok


def test_an_executor_that_loses_results_gives_no_partial_estimate(monkeypatch):
    monkeypatch.setattr("offpolicy.logs.tasks.TASK_ROWS", 5)
    log = random_log(3, episodes=9)
    with pytest.raises(op.OffPolicyError, match=r"map= gave 1 results for \d+ parts"):
        op.evaluate(log, map=lambda function, tasks: list(map(function, tasks))[:1])


def test_a_horizon_that_no_memory_holds_is_refused():
    with pytest.raises(op.UsageError, match="horizon must be at most"):
        op.evaluate(random_log(3), horizon=10**18, baseline=1.0)
