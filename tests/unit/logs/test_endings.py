"""`terminal` and `truncated`: an episode that ends before H on a row that does not end it was cut off."""

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from cli import offpolicy
from logs import bits, file_pieces, random_log, skeleton
from offpolicy.logs.transitions import transitions
from offpolicy.testing import Walk

WALK = Walk()
LENGTHS = [4, 2, 4, 3, 1]
#: Episode 1 has ended; 3 and 4 were cut off after three steps and after one.
ENDED = [False, True, False, False, False]


def cut_log(terminal=None, truncated=None):
    """Five episodes, of which the last rows have these marks; None for no such column."""
    log = skeleton(LENGTHS)
    rows = random_log(7, episodes=log.height, horizon=1).drop("episode", "step")
    last = np.zeros(log.height, dtype=bool)
    marks = {}
    for name, values in (("terminal", terminal), ("truncated", truncated)):
        if values is not None:
            last[:] = False
            last[np.cumsum(LENGTHS) - 1] = values
            marks[name] = last.copy()
    return log.hstack(rows).with_columns(**{name: pl.Series(values) for name, values in marks.items()})


def long_survival(seed, n, cut):
    """Reward 1 a step, the end after each with probability 0.1, H = 20; some episodes are not watched to the end."""
    rng = np.random.default_rng(seed)
    lengths = np.minimum(rng.geometric(0.1, n), 20)
    watched = np.where(rng.random(n) < cut, rng.integers(1, 20, n), 20)
    seen = np.minimum(lengths, watched)
    log = skeleton(seen)
    terminal = np.zeros(log.height, dtype=bool)
    terminal[np.cumsum(seen) - 1] = (lengths < 20) & (lengths <= watched)
    return log.with_columns(reward=1.0, ratio=1.0, terminal=pl.Series(terminal)), int((watched < lengths).sum())


def test_an_episode_that_does_not_end_before_the_horizon_is_cut_off_in_evaluate_and_check():
    log, cut = long_survival(0, n=300, cut=0.6)
    assert cut > 50
    report = op.check(log, horizon=20)
    assert report.found == cut
    with pytest.raises(op.BadLogError) as caught:
        op.evaluate(log, horizon=20)
    for problems in (report.problems, caught.value.problems):
        assert {(p.kind, p.column, p.value) for p in problems} == {("truncated", "terminal", "false")}
    ev = op.evaluate(log, horizon=20, truncation="as-terminal")
    assert ev.repairs == {"truncated_as_terminal": cut}
    assert ev.verdict.level != "reliable"


def test_the_problem_names_file_row_episode_step_column_and_value(tmp_path):
    cut_log(ENDED).rename({"terminal": "over"}).write_parquet(tmp_path / "log.parquet")
    found = op.check(tmp_path / "log.parquet", columns=op.Columns(terminal="over")).problems
    assert [(p.row, p.episode, p.step, p.column, p.value) for p in found] == [
        (12, 3, 2, "over", "false"),
        (13, 4, 0, "over", "false"),
    ]
    assert all(p.file.endswith("log.parquet") for p in found)
    assert "as-terminal" in found[0].message
    assert "Columns(terminal=None)" in found[0].message


def test_episodes_of_h_steps_lack_nothing():
    log = random_log(3, episodes=6, horizon=4, ragged=False)
    assert bits(op.evaluate(log.with_columns(terminal=False))) == bits(op.evaluate(log))
    with pytest.raises(op.BadLogError, match="terminal = false"):
        op.evaluate(log.with_columns(terminal=False), horizon=5)


@pytest.mark.parametrize(
    ("terminal", "truncated", "cut"),
    [
        (ENDED, None, [3, 4]),
        (ENDED, [False] * 5, [3, 4]),
        (ENDED, [True, True, False, True, False], [3, 4]),  # episode 1 says both: it has ended
        (None, [False, False, False, True, False], [3]),
        ([True] * 5, [True] * 5, []),
    ],
)
def test_terminal_goes_before_truncated(terminal, truncated, cut):
    log = cut_log(terminal, truncated)
    assert [p.episode for p in op.check(log).problems] == cut
    ev = op.evaluate(log, truncation="as-terminal")
    assert ev.repairs == ({"truncated_as_terminal": len(cut)} if cut else {})


@pytest.mark.parametrize("truncation", ["as-terminal", "bootstrap", "reduce-horizon"])
def test_what_terminal_says_is_mended_as_what_truncated_says(truncation):
    said = cut_log(truncated=[False, False, False, True, True])
    for log in (cut_log(ENDED), cut_log(ENDED, [False] * 5), cut_log(ENDED).with_columns(pl.col("terminal").cast(int))):
        ev, expected = (op.evaluate(each, truncation=truncation, baseline=0.5) for each in (log, said))
        assert bits(ev) == bits(expected)
        assert ev.repairs == expected.repairs != {}


@pytest.mark.parametrize("truncation", ["as-terminal", "bootstrap", "reduce-horizon"])
def test_a_cut_log_has_the_same_bits_in_any_pieces(tmp_path, truncation):
    log = cut_log(ENDED)
    whole = op.evaluate(log, truncation=truncation)
    every_row = file_pieces(log, tmp_path, range(1, log.height))
    pieces = [every_row, every_row[::-1], every_row[1::2] + every_row[::2]]
    for paths in (*pieces, log.lazy()):
        ev = op.evaluate(paths, truncation=truncation)
        assert bits(ev) == bits(whole)
        assert ev.repairs == whole.repairs
    texts = log.with_columns(episode=pl.format("user-{}", "episode").cast(pl.Categorical))
    assert bits(op.evaluate(texts, truncation=truncation)) == bits(whole)


@pytest.mark.parametrize("estimator", ["step-is", "dr"])
def test_a_log_that_is_sorted_first_keeps_what_a_bootstrap_needs(estimator):
    log = cut_log(truncated=ENDED).with_columns(q_hat=pl.lit(0.5), v_hat=pl.lit(0.5), r_hat=pl.lit(0.25))
    options = {"truncation": "bootstrap", "estimators": [estimator], "horizon": 4}
    one, other = (op.evaluate(log, order=order, **options)[estimator].value for order in ("sorted", "any"))
    assert one == other


def test_problems_do_not_depend_on_how_the_log_is_cut(tmp_path):
    log = cut_log(ENDED).with_columns(terminal=pl.col("terminal") | ((pl.col("episode") == 2) & (pl.col("step") == 1)))
    whole = [(p.kind, p.episode, p.step, p.column, p.value) for p in op.check(log).problems]
    assert whole[0] == ("after-terminal", 2, 1, "terminal", "true")
    for cuts in ([8], [7, 8, 9], range(1, log.height)):
        paths = file_pieces(log, tmp_path / str(len(list(cuts))), cuts)
        found = [(p.kind, p.episode, p.step, p.column, p.value) for p in op.check(paths).problems]
        assert sorted(found) == sorted(whole)


def test_rows_after_the_end_are_refused_whatever_the_truncation():
    log = random_log(3, episodes=4, horizon=3, ragged=False).with_columns(terminal=pl.col("step") == 1)
    for truncation in (None, "as-terminal"):
        with pytest.raises(
            op.BadLogError, match=r"(?s)rows of the episode follow.*\[after-terminal\].*: terminal = true"
        ):
            op.evaluate(log, truncation=truncation)


@pytest.mark.parametrize(("value", "kind"), [(None, "null"), (2, "not-a-mark")])
@pytest.mark.parametrize("column", ["terminal", "truncated"])
def test_marks_are_true_or_false(column, value, kind):
    marks = pl.when(pl.col("step") == 1).then(value).otherwise(0).cast(pl.Int8)
    found = op.check(random_log(3, episodes=2, horizon=3, ragged=False).with_columns(marks.alias(column))).problems
    assert {(p.kind, p.column, p.step) for p in found} == {(kind, column, 1)}


def test_a_column_that_means_something_else_is_left_unread(tmp_path):
    log = cut_log().with_columns(terminal=pl.lit("gate 4"))
    with pytest.raises(op.OffPolicyError, match=r"\"terminal\" must be a boolean.*Columns\(terminal=None\)"):
        op.evaluate(log)
    unread = op.Columns(terminal=None)
    assert bits(op.evaluate(log, columns=unread)) == bits(op.evaluate(cut_log()))
    assert op.check(log, columns=unread).ok
    cut_log(ENDED).write_parquet(tmp_path / "log.parquet")
    refused = offpolicy("check", tmp_path / "log.parquet")
    assert refused.code == 1
    assert "--column terminal=" in refused.out
    assert offpolicy("check", tmp_path / "log.parquet", "--column", "terminal=").code == 0
    assert offpolicy("check", tmp_path / "log.parquet", "--column", "reward=").code == 2


def cut_walks():
    """Walks of which every third is cut off after two steps."""
    log = WALK.simulate(WALK.behavior, 120, seed=3)
    return log.filter((pl.col("episode") % 3 > 0) | (pl.col("step") < 2))


def test_drivers_refuse_what_evaluate_refuses():
    log = cut_walks()
    cut = (
        log.group_by("episode").agg(pl.len(), pl.col("terminal").any()).filter(pl.col("len") < 10, ~pl.col("terminal"))
    )
    eager = WALK.policies["eager"]
    for call in (
        lambda **more: op.cross_fit(log, WALK, policy=eager, estimators=["dr"], **more),
        lambda **more: op.improve(log, WALK, generator={"eager": eager}, estimator="dr", **more),
    ):
        with pytest.raises(op.BadLogError, match="terminal = false"):
            call()
    found = op.cross_fit(log, WALK, policy=eager, estimators=["dr"], truncation="as-terminal").evaluation
    assert found.repairs["truncated_as_terminal"] == cut.height
    assert op.improve(log, WALK, generator={"eager": eager}, estimator="dr", truncation="as-terminal").winner


def test_drivers_do_not_read_what_is_left_unread():
    walks = WALK.simulate(WALK.behavior, 60, seed=3).drop("next_place")
    log, unread = walks.with_columns(terminal=pl.lit("gate 4")), op.Columns(terminal=None)
    arguments = {"policy": WALK.policies["eager"], "estimators": ["dr"]}
    expected = op.cross_fit(walks.drop("terminal"), WALK, **arguments)
    for each in (log, log.lazy()):
        assert bits(op.cross_fit(each, WALK, columns=unread, **arguments).evaluation) == bits(expected.evaluation)
    candidates = {"generator": {"eager": WALK.policies["eager"]}, "estimator": "dr"}
    found = op.improve(log, WALK, columns=unread, **candidates)
    assert found.candidates.equals(op.improve(walks.drop("terminal"), WALK, **candidates).candidates)


def test_a_fitter_takes_no_truncated_episode_as_ended():
    """Without `terminal` a short episode has ended, unless it says that it was cut off."""
    log = cut_walks().drop("next_place", "terminal")
    last = pl.col("step") == pl.col("step").max().over("episode")
    marked = log.with_columns(truncated=last & (pl.col("episode") % 3 == 0) & (pl.col("step") == 1))
    (plain, _), (found, known) = (read(each) for each in (log, marked))
    cut = marked["truncated"].to_numpy()
    assert cut.any()
    assert plain[cut].all()
    assert not found[cut].any()
    assert not known[cut].any()
    assert (found[~cut] == plain[~cut]).all()


def read(log):
    """Which rows of a log end an episode for a fitter, and of which it knows what follows."""
    batches = list(transitions(log, WALK))
    return tuple(np.concatenate([getattr(batch, name) for batch in batches]) for name in ("terminal", "known"))


def test_a_fitter_takes_marks_that_are_0_and_1():
    log = WALK.simulate(WALK.behavior, 20, seed=3)
    for column in (pl.Int8, pl.UInt32):
        (found,) = transitions(log.with_columns(pl.col("terminal").cast(column)), WALK)
        assert found.terminal.tolist() == log["terminal"].to_list()
    with pytest.raises(op.BadLogError, match=r"(?s)\[not-a-mark\].*: terminal = 2"):
        list(transitions(log.with_columns(terminal=2), WALK))


def test_the_command_counts_what_was_cut_off(tmp_path):
    cut_log(ENDED).write_parquet(tmp_path / "log.parquet")
    done = offpolicy("evaluate", tmp_path / "log.parquet", "--truncation", "as-terminal", "--json")
    assert done.document["repairs"] == {"truncated_as_terminal": 2}


def test_simulated_logs_of_whole_episodes_are_sound():
    log = WALK.simulate(WALK.behavior, 200, seed=1)
    assert op.check(log, horizon=WALK.horizon).ok
    assert {*log.group_by("episode").agg(pl.col("terminal").any())["terminal"]} == {True, False}
