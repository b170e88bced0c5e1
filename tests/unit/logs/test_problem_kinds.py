"""What is wrong with a log is told by kind: how many problems, in which share of the log, and what is left to try."""

import re

import offpolicy as op
import polars as pl
import pytest
from cli import offpolicy
from logs import random_log

NAN = float("nan")


@pytest.fixture
def log():
    return random_log(17, episodes=3000, horizon=4, ragged=False)


@pytest.fixture
def bad(log):
    """Two columns of 9,000 rows in 3,000 episodes are NaN, two probabilities negative, and one value is null."""
    late = pl.col("step") > 0
    return log.with_columns(
        reward=pl.when(late).then(NAN).otherwise("reward"),
        q_hat=pl.when(late).then(NAN).otherwise("q_hat"),
        target_prob=pl.when(pl.int_range(pl.len()).is_in([40, 41])).then(-1.0).otherwise("target_prob"),
        v_hat=pl.when(pl.int_range(pl.len()) == pl.len() - 1).then(None).otherwise("v_hat"),
    )


def refused(log, **arguments):
    with pytest.raises(op.BadLogError) as caught:
        op.evaluate(log, **arguments)
    return caught.value


@pytest.mark.parametrize("threads", [1, 2])
def test_kinds_are_counted_beyond_what_is_kept(bad, tmp_path, threads):
    bad.write_parquet(tmp_path / "bad.parquet", row_group_size=700)
    expected = {"nan": (18_000, 9_000, 3_000), "negative": (2, 2, 1), "null": (1, 1, 1)}
    for source in (bad, bad.lazy(), tmp_path / "bad.parquet"):
        error = refused(source, threads=threads)
        assert len(error.problems) == 100
        assert error.found == 18_003
        assert {kind.kind: (kind.problems, kind.rows, kind.episodes) for kind in error.kinds} == expected
        assert op.check(source, limit=3).kinds == tuple(op.check(source, limit=3, threads=3).kinds)
        assert [kind.kind for kind in error.kinds] == ["nan", "negative", "null"]


def test_shares_are_of_the_rows_and_episodes_of_the_log(bad):
    nan, negative, null = refused(bad).kinds
    assert (nan.rows_share, nan.episodes_share) == (0.75, 1.0)
    assert (negative.rows_share, negative.episodes_share) == (2 / 12_000, 1 / 3_000)
    assert (null.examples[0].column, null.examples[0].row) == ("v_hat", 11_999)


@pytest.mark.parametrize("limit", [20, 100_000])
def test_an_episode_that_is_scattered_counts_once(limit):
    shuffled = op.demo_log(episodes=50).sample(fraction=1, shuffle=True, seed=1)
    (scattered,) = (kind for kind in op.check(shuffled, limit=limit).kinds if kind.kind == "reappears")
    assert scattered.problems > 100
    assert (scattered.episodes, scattered.episodes_share) == (50, None)


def test_a_text_id_that_comes_again_twice_counts_once_and_has_no_step_that_is_not_its_own():
    log = pl.DataFrame({"episode": list("ababab"), "step": [0, 0, 1, 1, 2, 2], "reward": 0.0})
    report = op.check(log)
    (scattered,) = (kind for kind in report.kinds if kind.kind == "reappears")
    assert scattered.episodes == 2
    steps = log["step"].to_list()
    assert all(problem.step in (None, steps[problem.row]) for problem in report.problems if problem.row is not None)


def test_the_message_has_a_paragraph_for_each_kind_with_its_first_places(bad):
    lines = str(refused(bad)).splitlines()
    assert lines[0] == "the log has 18,003 problems"
    assert lines[1].startswith(
        "  18,000 problems in 9,000 rows (75.0%) and 3,000 episodes (100.0%): NaN is not a value"
    )
    assert lines[2].startswith("    frame, row 1, episode ")
    assert lines[2].endswith("step 1: q_hat = NaN")
    assert "    … and 17,995 more" in lines
    assert any(line.startswith("  2 problems in 2 rows (under 0.1%) and 1 episode (under 0.1%)") for line in lines)
    assert any("v_hat = null: null is not a value" in line for line in lines)
    assert lines[-1] == "  op.check(log) lists them"
    assert len(lines) < 20


def test_the_command_line_tells_kinds_too(bad, tmp_path):
    path = tmp_path / "bad.parquet"
    bad.write_parquet(path)
    shown = offpolicy("check", path, "--limit", "5")
    assert shown.code == 1
    assert re.search(r"nan +18,000 +9,000 +75\.0% +3,000 +100\.0%", shown.out)
    for command in ("check", "evaluate"):
        document = offpolicy(command, path, "--json").document
        kinds = (document if command == "check" else document["error"])["kinds"]
        assert [(kind["kind"], kind["problems"]) for kind in kinds] == [("nan", 18_000), ("negative", 2), ("null", 1)]
        assert kinds[0]["rows_share"] == 0.75


SPOILED = {
    "gap": (lambda log: log.filter(pl.int_range(pl.len()) != 5), "order", "log every step"),
    "first-step": (lambda log: log.filter(pl.int_range(pl.len()) != 4), "order", "log the first steps too"),
    "duplicate": (lambda log: pl.concat([log[:2], log[1:]]), "dedupe", None),
}


@pytest.mark.parametrize("kind", SPOILED)
def test_sorting_is_not_advised_to_those_who_sorted(log, kind):
    spoil, advised, afterwards = SPOILED[kind]
    bad = spoil(log)
    assert {problem.kind for problem in refused(bad).problems} == {kind}
    assert f'{advised}="' in str(refused(bad))
    again = str(refused(bad, order="any"))
    assert 'order="any"' not in again
    assert afterwards is None or afterwards in again
    assert "order=" not in str(op.check(bad, order="any"))


def test_dropping_rows_is_not_advised_to_those_who_dropped_them(log):
    twice = pl.concat([log[:2], log[1:2].with_columns(reward=9.0), log[2:]])
    assert 'dedupe="identical"' in str(refused(twice))
    after = str(refused(twice, dedupe="identical"))
    assert "dedupe" not in after
    assert "the two rows differ" in after


def test_a_mark_in_the_middle_is_not_answered_with_the_truncation_that_was_given(log):
    bad = log.with_columns(truncated=pl.int_range(pl.len()) == 1)
    assert 'truncation="as-terminal"' in str(refused(bad))
    after = str(refused(bad, truncation="as-terminal"))
    assert "truncation=" not in after
    assert "rows of the episode follow" in after


@pytest.mark.parametrize("value", [None, NAN])
def test_leaving_out_episodes_is_called_a_bias(log, value):
    text = str(refused(log.with_columns(reward=pl.when(pl.col("step") == 0).then(value).otherwise("reward"))))
    assert "leave out the whole episode" not in text
    assert "biases the answer" in text


def stream(frame):
    """A reader that can be read only once."""
    return frame.to_arrow().to_reader()


@pytest.mark.parametrize("arguments", [{}, {"order": "any"}, {"dedupe": "identical"}])
@pytest.mark.parametrize("make", [None, stream, pl.DataFrame.lazy])
@pytest.mark.parametrize("column", ["reward", "step"])
def test_a_message_names_the_users_file_and_no_temporary_one(log, tmp_path, make, arguments, column):
    path = tmp_path / "mine.parquet"
    for value in ("text", NAN):
        bad = log.with_columns(pl.lit(value).alias(column)) if value == "text" else log.with_columns(reward=NAN)
        bad.write_parquet(path)
        with pytest.raises(op.OffPolicyError) as caught:
            op.evaluate(path if make is None else make(bad), **arguments)
        assert "offpolicy-" not in str(caught.value)
        assert "bucket" not in str(caught.value)
        if make is None:
            assert "mine.parquet" in str(caught.value)


def test_many_files_that_were_sorted_are_named_by_the_first(log, tmp_path):
    paths = [tmp_path / f"{number}.parquet" for number in range(9)]
    for number, path in enumerate(paths):
        log.with_columns(reward=NAN)[number::9].write_parquet(path)
    (problem, *_) = refused(paths, order="any").problems
    assert problem.file == f"{paths[0]}, {paths[1]} and 7 more files"


@pytest.mark.parametrize("dtype", [pl.Int64, pl.String])
@pytest.mark.parametrize("row", [0, 5])
@pytest.mark.parametrize("order", ["sorted", "any"])
def test_a_row_without_an_id_is_not_counted_to_another_episode(tmp_path, dtype, row, order):
    here = pl.int_range(pl.len()) == row
    spoiled = op.demo_log(episodes=3).with_columns(
        episode=pl.when(~here).then(pl.col("episode").cast(dtype)), reward=pl.when(~here).then("reward")
    )
    spoiled.write_parquet(tmp_path / "log.parquet")
    for log in (spoiled, spoiled.lazy(), tmp_path / "log.parquet"):
        problems = [problem for problem in refused(log, order=order).problems if problem.kind == "null"]
        assert {problem.column for problem in problems} == {"episode", "reward"}
        assert {problem.episode for problem in problems} == {"null"}
        assert all(f"episode null, step {spoiled['step'][row]}: " in str(problem) for problem in problems)
