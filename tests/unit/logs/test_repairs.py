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


@pytest.mark.parametrize(
    ("repeated", "note"),
    [
        (0, "0 repeated rows were dropped"),
        (1, "1 repeated row was dropped"),
        (2, "2 repeated rows were dropped"),
    ],
)
def test_a_note_counts_the_rows_that_were_dropped(log, repeated, note):
    assert note in op.evaluate(pl.concat([log[:repeated], log]), order="any", dedupe="identical").notes


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


def cut_log(horizon=6, seed=5):
    """Episodes of full length, of which some are cut off after three or more steps."""
    log = random_log(seed, episodes=12, horizon=horizon, ragged=False)
    kept = log.filter((pl.col("episode").rank("dense") % 3 != 0) | (pl.col("step") < 3 + pl.col("episode") % 2))
    last = pl.col("step") == pl.col("step").max().over("episode")
    return kept.with_columns(truncated=last & (pl.len().over("episode") < horizon))


def reduced(log, horizon):
    first = log["step"].min()
    return log.filter(pl.col("step") < first + horizon)


@pytest.mark.parametrize("first_step", [0, 1])
def test_a_reduced_horizon_evaluates_the_steps_that_all_have(first_step):
    log = cut_log().with_columns(pl.col("step") + first_step)
    shortest = log.group_by("episode").agg(pl.len(), cut=pl.col("truncated").any()).filter("cut")["len"].min()
    ev = op.evaluate(log, truncation="reduce-horizon", baseline=0.5)
    expected = op.evaluate(reduced(log, shortest).drop("truncated"), baseline=0.5)
    names = ["mc", "is", "step-is", "wis", "step-wis", "dr", "dr-bsl", "wdr"]
    assert ev.table["estimator"].to_list() == names
    for name in names:
        assert (ev[name].value, ev[name].std_error) == (expected[name].value, expected[name].std_error)
    assert ev.horizon == shortest
    assert ev.repairs["horizon_reduced_to"] == shortest
    assert any("first 3 steps" in note for note in ev.notes)
    assert any("left out" in note for note in ev.notes)


@pytest.mark.parametrize("estimator", ["reg", "dr-v2", "magic"])
def test_models_of_more_steps_are_refused_with_a_reduced_horizon(estimator):
    with pytest.raises(op.UsageError, match=f"{estimator}.*reduce-horizon"):
        op.evaluate(cut_log(), truncation="reduce-horizon", estimators=[estimator])


def test_bootstrapped_episodes_end_with_what_the_model_expects():
    log = cut_log()
    added = pl.when("truncated").then(pl.col("q_hat") - pl.col("r_hat")).otherwise(0.0)
    expected = op.evaluate(log.with_columns(pl.col("reward") + added).drop("truncated"), baseline=0.5)
    ev = op.evaluate(log, truncation="bootstrap", baseline=0.5)
    names = ["is", "step-is", "wis", "step-wis", "reg", "dr", "dr-bsl", "wdr", "magic"]
    assert ev.table["estimator"].to_list() == names
    for name in names:
        assert (ev[name].value, ev[name].std_error) == (expected[name].value, expected[name].std_error)
    assert ev.repairs["truncated_bootstrapped"] == log["truncated"].sum()
    assert any("taken from the model" in note for note in ev.notes)
    assert ev.values("dr").equals(expected.values("dr"))


def test_dr_of_a_bootstrapped_episode_by_hand():
    """V̂ + ρ (r + γ E V̂(s') − Q̂), with γ E V̂(s') = Q̂ − R̂: one step, cut before a horizon of two."""
    log = pl.DataFrame({"episode": [1], "step": [0], "reward": [0.5], "ratio": [2.0], "truncated": [True]})
    log = log.with_columns(q_hat=3.0, v_hat=4.0, r_hat=0.25)
    ev = op.evaluate(log, horizon=2, truncation="bootstrap", estimators=["dr"])
    assert ev["dr"].value == 4.0 + 2.0 * (0.5 - 0.25)


def test_an_episode_cut_at_the_horizon_lacks_nothing():
    log = random_log(5, episodes=4, horizon=3, ragged=False)
    log = log.with_columns(truncated=pl.col("step") == pl.col("step").max())
    for kind in ("bootstrap", "reduce-horizon"):
        ev = op.evaluate(log, truncation=kind)
        assert bits(ev) == bits(op.evaluate(log.drop("truncated")))
        assert not any(ev.repairs.values())


@pytest.mark.parametrize("kind", ["bootstrap", "reduce-horizon"])
def test_mended_logs_have_the_same_bits_in_any_form(tmp_path, kind):
    log = cut_log()
    paths = [tmp_path / f"{i}.parquet" for i in range(5)]
    for i, path in enumerate(paths):
        log[i * log.height // 5 : (i + 1) * log.height // 5].write_parquet(path)
    whole = op.evaluate(log, truncation=kind)
    for other in (log.lazy(), paths, paths[::-1], log.to_arrow()):
        assert bits(op.evaluate(other, truncation=kind)) == bits(whole)


def test_the_rest_of_a_mended_log_is_checked_too():
    log = cut_log()
    late = log["step"] == 5
    with pytest.raises(op.BadLogError, match="reward"):
        op.evaluate(
            log.with_columns(reward=pl.when(late).then(float("nan")).otherwise("reward")), truncation="reduce-horizon"
        )
    with pytest.raises(op.BadLogError, match="r_hat"):
        op.evaluate(
            log.with_columns(r_hat=pl.when("truncated").then(float("nan")).otherwise("r_hat")),
            truncation="bootstrap",
            estimators=["step-is"],
        )


def test_a_bootstrap_needs_a_model_and_one_policy():
    log = cut_log()
    for column in ("q_hat", "r_hat"):
        with pytest.raises(op.UsageError, match=f"bootstrap.*{column}"):
            op.evaluate(log.drop(column), truncation="bootstrap", estimators=["step-is"])
    policies = {name: op.PolicyColumns(target_prob="target_prob", q_hat="q_hat", r_hat="r_hat") for name in "ab"}
    with pytest.raises(op.UsageError, match="one policy at a time"):
        op.evaluate(log, truncation="bootstrap", policies=policies, estimators=["step-is"])
    with pytest.raises(op.UsageError, match=r"mc.*bootstrap"):
        op.evaluate(log, truncation="bootstrap", estimators=["mc"])


def test_a_bootstrap_refuses_q_hat_in_the_place_of_r_hat():
    """Annotated with a domain, rows without a P̂ of their own have the ratio 0 and Q̂ as r_hat."""
    log, unknown = cut_log(), pl.col("truncated") & (pl.col("episode") == pl.col("episode").filter("truncated").max())
    log = log.with_columns(
        transition_ratio=pl.when(unknown).then(0.0).otherwise(1.0),
        r_hat=pl.when(unknown).then("q_hat").otherwise("r_hat"),
    )
    with pytest.raises(op.UsageError, match=r"needs R̂, and r_hat is Q̂ .* on 1 last rows"):
        op.evaluate(log, truncation="bootstrap", estimators=["dr"])
    assert op.evaluate(log, truncation="as-terminal", estimators=["dr"])["dr"].value is not None


def test_a_bootstrapped_log_promises_nothing_for_finite_samples():
    ev = op.evaluate(cut_log(), horizon=6, truncation="bootstrap", estimators=["step-is"])
    found = ev["step-is"].interval(method="hoeffding", bounds=op.Bounds(reward=(-9, 9), ratio=9))
    assert found.low is None
    assert "taken from the model" in found.reason


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
