"""Episodes cross files that are each sorted by episode and step, such as sessions over midnight in files of one day."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from logs import bits, detail_bits, value_bits, wide_log
from offpolicy.testing import Walk


def day_files(log, folder, seed, days=4, texts=False):
    """The rows by day, in a file each; an episode starts at any time, and steps take a part of a day."""
    rng = np.random.default_rng(seed)
    ids = log["episode"].unique(maintain_order=True)
    starts = pl.DataFrame({"episode": ids, "start": rng.uniform(0, days - 1, len(ids))})
    rank = pl.int_range(pl.len()).over("episode")
    dated = log.join(starts, on="episode", maintain_order="left").with_columns(
        day=(pl.col("start") + rank * rng.uniform(0.02, 0.3)).floor().cast(pl.Int64)
    )
    if texts:
        dated = dated.with_columns(pl.format("session-{}", "episode").alias("episode"))
    folder.mkdir(exist_ok=True)
    paths = []
    for (day,), rows in dated.sort("episode", "step").group_by("day", maintain_order=True):
        paths.append(folder / f"day-{day}.parquet")
        rows.drop("start", "day").write_parquet(paths[-1], row_group_size=50)
    return sorted(paths)


@pytest.fixture
def log():
    return wide_log(91, episodes=120, horizon=12)


@pytest.mark.parametrize("first_step", [0, 1])
@pytest.mark.parametrize("seed", range(3))
def test_sessions_over_midnight_give_the_bits_of_one_file(log, tmp_path, seed, first_step):
    log = log.with_columns(pl.col("step") + first_step)
    paths = day_files(log, tmp_path / "days", seed)
    whole = op.evaluate(log, discount=0.9, baseline=0.1)
    for files in (paths, paths[::-1]):
        ev = op.evaluate(files, discount=0.9, baseline=0.1, threads=1 + seed)
        assert bits(ev) == bits(whole)
        assert detail_bits(ev) == detail_bits(whole)
        assert value_bits(ev, "dr") == value_bits(whole, "dr")
        assert ev["step-wis"].interval(method="t-skew") == whole["step-wis"].interval(method="t-skew")


def test_the_same_through_map_and_with_ids_that_are_texts(log, tmp_path):
    paths = day_files(log, tmp_path / "days", 5, texts=True)
    whole = op.evaluate(log, discount=0.9)
    with ThreadPoolExecutor(2) as executor:
        assert bits(op.evaluate(paths, discount=0.9, map=executor.map)) == bits(whole)
    assert bits(op.evaluate(paths, discount=0.9)) == bits(whole)


def test_a_session_may_be_in_three_files_and_begin_with_a_single_row(tmp_path):
    log = op.demo_log(episodes=9)
    crossing, step = pl.col("episode") == 4, pl.col("step")
    parts = [
        pl.concat(
            [log.filter(pl.col("episode") < 4), log.filter(crossing, step == 0), log.filter(pl.col("episode") == 5)]
        ),
        pl.concat([log.filter(crossing, step.is_between(1, 5)), log.filter(pl.col("episode") == 6)]),
        pl.concat([log.filter(crossing, step > 5), log.filter(pl.col("episode") > 6)]),
    ]
    paths = [tmp_path / f"{number}.parquet" for number in range(3)]
    for part, path in zip(parts, paths, strict=True):
        part.write_parquet(path)
    assert bits(op.evaluate(paths, discount=0.9)) == bits(op.evaluate(log, discount=0.9))
    assert op.check(paths).ok


def test_other_problems_of_day_files_are_told_alone(log, tmp_path):
    spoiled = log.with_columns(reward=pl.when(pl.int_range(pl.len()) == 77).then(float("nan")).otherwise("reward"))
    report = op.check(day_files(spoiled, tmp_path / "days", 1))
    assert [(problem.kind, problem.episode, problem.step) for problem in report.problems] == [
        ("nan", log["episode"][77], log["step"][77])
    ]


def test_a_missing_day_is_a_gap_or_a_missing_beginning(log, tmp_path):
    paths = day_files(log, tmp_path / "days", 4)
    rows = pl.concat([pl.read_parquet(path) for path in paths if path != paths[1]])
    spans = rows.group_by("episode").agg(
        pl.col("step").min(), (pl.col("step").max() - pl.col("step").min() + 1 - pl.len()).alias("gap")
    )
    expected = {episode: "first-step" if first else "gap" for episode, first, gap in spans.iter_rows() if first or gap}
    assert set(expected.values()) == {"first-step", "gap"}
    report = op.check([path for path in paths if path != paths[1]])
    assert {problem.episode: problem.kind for problem in report.problems} == expected


def test_the_pieces_of_one_file_must_be_together(tmp_path):
    log = op.demo_log(episodes=6)
    scattered = pl.concat([log[:4], log[10:], log[4:10]])
    scattered.write_parquet(tmp_path / "a.parquet", row_group_size=4)
    op.demo_log(episodes=8).filter(pl.col("episode") > 5).write_parquet(tmp_path / "b.parquet")
    report = op.check([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    assert {(problem.kind, problem.episode) for problem in report.problems} == {("reappears", 0)}


def test_models_are_fitted_to_day_files_as_to_one(tmp_path):
    walk = Walk()
    log = walk.simulate(walk.behavior, 200, seed=1)
    paths = day_files(log, tmp_path / "days", 6)
    whole = op.cross_fit(log, walk, policy=walk.policies["eager"], estimators=["step-is", "dr"])
    found = op.cross_fit(paths, walk, policy=walk.policies["eager"], estimators=["step-is", "dr"])
    assert bits(found.evaluation) == bits(whole.evaluation)
    for path in paths:
        pl.read_parquet(path).drop("next_place").write_parquet(path)
    with pytest.raises(op.BadLogError, match='as order="any" does'):
        op.cross_fit(paths, walk, policy=walk.policies["eager"])
    assert op.cross_fit(paths, walk, policy=walk.policies["eager"], order="any").evaluation.episodes == 200


def test_too_many_pieces_are_refused_with_what_helps(tmp_path):
    rows = pl.DataFrame({"episode": pl.int_range(132_000, eager=True)}).with_columns(reward=1.0, ratio=1.0)
    paths = [tmp_path / "first.parquet", tmp_path / "second.parquet"]
    for step, path in enumerate(paths):
        rows.with_columns(step=step).write_parquet(path)
    with pytest.raises(op.BadLogError, match='order="any" brings its steps together') as caught:
        op.evaluate(paths, estimators=["step-is"])
    assert caught.value.found > 131_072
    assert op.evaluate(paths, estimators=["step-is"], order="any")["step-is"].value == 2.0


def test_the_same_day_twice_is_refused(log, tmp_path):
    paths = day_files(log, tmp_path / "days", 3)
    copy = tmp_path / "copy.parquet"
    copy.write_bytes(paths[1].read_bytes())
    kinds = {problem.kind for problem in op.check([*paths, copy]).problems}
    assert kinds <= {"duplicate", "reappears", "gap"}
    assert kinds
