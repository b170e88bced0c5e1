"""What is repaired on request is counted in the result, and nothing else is."""

import offpolicy as op
import polars as pl
import pytest
from logs import bits, file_pieces, random_log, value_bits


@pytest.fixture
def log():
    return random_log(71, episodes=9, horizon=5)


def test_a_clean_log_has_no_repairs(log):
    ev = op.evaluate(log)
    assert not any(ev.repairs.values())


@pytest.mark.parametrize("seed", range(3))
def test_any_order_sorts_to_the_same_bits(log, seed):
    shuffled = log.sample(fraction=1.0, shuffle=True, seed=seed)
    with pytest.raises(op.BadLogError):
        op.evaluate(shuffled)
    for source in (shuffled, shuffled.lazy(), shuffled.to_arrow()):
        ev = op.evaluate(source, order="any")
        assert bits(ev) == bits(op.evaluate(log))
        assert value_bits(ev, "dr") == value_bits(op.evaluate(log), "dr")
        assert ev.repairs["sorted"] is True


def test_any_order_sorts_text_ids_and_files(log, tmp_path):
    named = log.with_columns(episode="e" + pl.col("episode").cast(pl.String))
    shuffled = named.sample(fraction=1.0, shuffle=True, seed=4)
    paths = file_pieces(shuffled, tmp_path, [5, 6, 20])
    assert bits(op.evaluate(paths, order="any")) == bits(op.evaluate(named))


def test_sorting_does_not_hide_duplicates_and_gaps(log):
    twice = pl.concat([log, log[3:4]])
    with pytest.raises(op.BadLogError) as caught:
        op.evaluate(twice, order="any")
    assert {p.kind for p in caught.value.problems} == {"duplicate"}
    middle = log.with_row_index().filter(pl.col("step") == 1)["index"][0]
    longer = log.with_row_index().filter(pl.col("step") == 2)["episode"].to_list()
    gap = log.filter(~((pl.col("step") == 1) & pl.col("episode").is_in(longer)))
    assert log[middle]["step"].item() == 1
    with pytest.raises(op.BadLogError) as caught:
        op.evaluate(gap, order="any")
    assert {p.kind for p in caught.value.problems} == {"gap"}
    assert {p.episode for p in caught.value.problems} == set(longer)


@pytest.mark.parametrize("copies", [1, 3])
def test_identical_duplicates_go_when_asked(log, copies):
    parts = [pl.concat([log[i : i + 1]] * (copies + 1 if i in (2, 7, 11) else 1)) for i in range(log.height)]
    twice = pl.concat(parts)
    with pytest.raises(op.BadLogError) as caught:
        op.evaluate(twice)
    assert {p.kind for p in caught.value.problems} == {"duplicate"}
    for source in (twice, twice.lazy()):
        ev = op.evaluate(source, dedupe="identical")
        assert bits(ev) == bits(op.evaluate(log))
        assert ev.repairs["duplicates_removed"] == 3 * copies


def test_duplicates_go_from_an_unsorted_log_too(log):
    twice = pl.concat([log, log]).sample(fraction=1.0, shuffle=True, seed=1)
    ev = op.evaluate(twice, order="any", dedupe="identical")
    assert bits(ev) == bits(op.evaluate(log))
    assert ev.repairs["duplicates_removed"] == log.height


@pytest.mark.parametrize("column", ["reward", "target_prob", "v_hat"])
def test_duplicates_that_differ_stay_an_error(log, column):
    other = log[3:4].with_columns(pl.col(column) / 2)
    twice = pl.concat([log[:4], other, log[4:]])
    with pytest.raises(op.BadLogError) as caught:
        op.evaluate(twice, dedupe="identical")
    assert {p.kind for p in caught.value.problems} == {"duplicate"}


def truncated(log, episodes):
    last = pl.col("step") == pl.col("step").max().over("episode")
    return log.with_columns(truncated=last & pl.col("episode").is_in(episodes))


def short_episodes(log):
    lengths = log.group_by("episode", maintain_order=True).len()
    return lengths.filter(pl.col("len") < 5)["episode"].to_list()


def test_truncation_is_refused_and_named(log):
    short = short_episodes(log)[:2]
    with pytest.raises(op.BadLogError) as caught:
        op.evaluate(truncated(log, short))
    problems = caught.value.problems
    assert {(p.kind, p.episode) for p in problems} == {("truncated", e) for e in short}
    assert "truncat" in str(caught.value)
    assert "as-terminal" in str(caught.value)


def test_truncation_taken_as_terminal_is_flagged(log):
    short = short_episodes(log)[:2]
    ev = op.evaluate(truncated(log, short), truncation="as-terminal")
    assert bits(ev) == bits(op.evaluate(log))
    assert ev.repairs["truncated_as_terminal"] == 2


def test_a_log_that_says_nothing_was_truncated_is_plain(log):
    ev = op.evaluate(truncated(log, []))
    assert bits(ev) == bits(op.evaluate(log))
    assert not any(ev.repairs.values())


def test_files_whose_ids_have_different_widths_are_sorted_together(tmp_path):
    log = random_log(17, episodes=9)
    half = log.height // 2
    parts = (log[:half].with_columns(pl.col("episode").cast(pl.Int32)), log[half:])
    paths = [tmp_path / f"{i}.parquet" for i in range(2)]
    for part, path in zip(parts, paths, strict=True):
        part.sample(fraction=1, shuffle=True, seed=1).write_parquet(path)
    assert bits(op.evaluate(paths, order="any")) == bits(op.evaluate(log))


@pytest.mark.parametrize("kind", [pl.String, pl.UInt64])
def test_ids_that_no_type_holds_together_name_the_files(tmp_path, kind):
    log = random_log(17, episodes=9)
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    log.write_parquet(paths[0])
    log.with_columns(pl.col("episode").cast(kind)).write_parquet(paths[1])
    with pytest.raises(op.BadFileError, match=r"b\.parquet: column 'episode' is .* here and Int64 in .*a\.parquet"):
        op.evaluate(paths, order="any")
