"""Ids of episodes that come again: the core finds them by a hash, and the log says what they are."""

import offpolicy as op
import polars as pl
import pytest


def texts(log: pl.DataFrame) -> pl.DataFrame:
    """The log with names for its episodes."""
    return log.with_columns(episode=pl.format("a rather long name of an episode {}", "episode"))


def test_a_text_that_comes_again_is_named_in_its_file_and_row(tmp_path):
    log = texts(op.demo_log(episodes=4))
    paths = [tmp_path / name for name in ("a.parquet", "b.parquet")]
    log.write_parquet(paths[0])
    log.filter(pl.col("episode").str.ends_with("2")).write_parquet(paths[1])
    with pytest.raises(op.BadLogError) as refusal:
        op.evaluate(paths)
    (problem,) = [problem for problem in refusal.value.problems if problem.kind == "reappears"]
    assert (problem.file, problem.row, problem.step) == (str(paths[1]), 0, 0)
    assert problem.episode == "a rather long name of an episode 2"


@pytest.mark.parametrize("lazy", [False, True])
def test_check_names_all_texts_that_come_again(lazy):
    once = texts(op.demo_log(episodes=30))
    log = pl.concat([once, once])
    report = op.check(log.lazy() if lazy else log)
    found = [problem.episode for problem in report.problems if problem.kind == "reappears"]
    assert found == once["episode"].unique(maintain_order=True).to_list()


def test_of_more_than_are_shown_the_first_in_the_log_are_named():
    once = texts(op.demo_log(episodes=30))
    report = op.check(pl.concat([once, once]), limit=3)
    begun = once.with_row_index().filter(pl.col("step") == 0)["index"].head(3)
    assert [problem.row for problem in report.problems] == (begun + once.height).to_list()
    assert report.found == 30
