"""Names of files, ids and policies may hold anything: no text of ours lets them forge a line or move a terminal."""

import os
import re
import stat
from pathlib import Path

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from cli import offpolicy
from improving import EAGER, LOG, WALK
from logs import random_log
from offpolicy._util import plotting
from offpolicy._util.files import whole_file, write_json

FORGED = "a\nreliable: all is well\x1b[2K\x07\u202e"
#: What stands for it.
SHOWN = r"a\nreliable: all is well\x1b[2K\x07\u202e"


def unforged(text):
    """The text, after a look at its lines: none begins with ours, and none has what a terminal obeys."""
    assert all(line.isprintable() for line in text.split("\n"))
    assert not re.search(r"^reliable: all is well", text, re.MULTILINE)
    return text


@pytest.fixture
def log():
    return random_log(seed=11, episodes=8, horizon=6)


@pytest.fixture
def strange(log, tmp_path):
    """A log whose file, episodes and a policy have that name; the first reward is none."""
    path = tmp_path / f"{FORGED}.parquet"
    ids = pl.format("{}{}", pl.lit(FORGED), pl.col("episode")).alias("episode")
    reward = pl.when(pl.int_range(pl.len()) == 0).then(None).otherwise("reward").alias("reward")
    log.with_columns(ids, reward).write_parquet(path)
    return path


def test_a_problem_is_one_line(strange):
    with pytest.raises(op.BadLogError) as caught:
        op.evaluate(strange)
    said = unforged(str(caught.value))
    assert SHOWN in said
    assert len(said.split("\n")) == 2
    assert unforged(str(op.check(strange))).count("\n") == 2
    assert caught.value.problems[0].episode.startswith(FORGED)  # as data it is what it is


@pytest.mark.parametrize("command", ["evaluate", "check"])
def test_the_command_line_shows_it_so_too(strange, command):
    run = offpolicy(command, strange)
    assert run.code == 1
    unforged(run.out)
    unforged(run.err)


def test_a_bad_file_is_one_line(tmp_path):
    path = tmp_path / FORGED
    path.write_bytes(b"PAR1" * 9)
    for name in (path, tmp_path / f"{FORGED}.absent"):
        with pytest.raises(op.BadFileError) as caught:
            op.evaluate(name)
        assert SHOWN in unforged(str(caught.value))
        assert "\n" not in str(caught.value)
        assert caught.value.file == str(name)


def test_results_show_policies_so(log, tmp_path):
    path = tmp_path / "log.parquet"
    log.write_parquet(path)
    ev = op.evaluate(path, policies={FORGED: op.PolicyColumns(target_prob="target_prob")})
    assert r"a\nreliable" in unforged(str(ev))
    run = offpolicy("evaluate", path, "--policy", f"{FORGED}=target_prob", "--diagnostics")
    assert run.code == 0
    unforged(run.out)
    best = op.improve(LOG, WALK, generator={FORGED: EAGER}, estimator="step-is")
    assert r"a\nreliable" in unforged(str(best))


@pytest.mark.parametrize("name", ["a\x00b", "a\x1bb", "a\ufffeb", "a\nb", "a" * 100_000, FORGED])
@pytest.mark.parametrize("suffix", ["svg", "png", "html"])
def test_a_picture_is_drawn_whatever_candidates_are_called(name, suffix, tmp_path):
    best = op.improve(LOG, WALK, generator={name: EAGER, name + "2": WALK.behavior}, estimator="step-is")
    best.save(tmp_path / f"best.{suffix}")
    size = (tmp_path / f"best.{suffix}").stat().st_size
    assert 0 < size < (50_000 if suffix == "svg" else 5_000_000)


def test_long_names_in_a_picture_stay_different():
    one, other = (plotting.drawable("a" * 1000 + end) for end in "xy")
    assert one != other
    assert len(one) < 500


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "result.json"
    path.touch()
    path.chmod(mode)
    write_json(path, {})
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_mode_of_new_files(tmp_path):
    (tmp_path / "other").touch()
    with whole_file(tmp_path / "new") as beside:
        beside.touch()
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("order", ["sorted", "any"])
def test_a_name_that_is_no_utf8_is_a_name(log, tmp_path, order):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/log\xff.parquet")
    with Path(path).open("wb") as file:
        log.write_parquet(file)
    ev = op.evaluate(path, order=order)
    assert ev.table.equals(op.evaluate(log).table)
    assert ev.sources[0]["source"] == path
    run = offpolicy("evaluate", path, "--order", order)
    assert (run.code, run.err) == (0, "")
    bootstrap = {"interval": "bootstrap", "estimators": ["step-wis"]}
    assert op.evaluate(path, **bootstrap).table.equals(op.evaluate(log, **bootstrap).table)


def test_a_pipe_is_told_from_a_file_that_is_not_there(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(op.BadFileError, match=r"pipe: it is no regular file.*copy it"):
        op.evaluate(tmp_path / "pipe")


def test_a_surrogate_in_a_name_is_refused(log):
    for policies in ({"\udcff": op.PolicyColumns(target_prob="target_prob")},):
        with pytest.raises(
            op.UsageError, match=r"the name of a policy '\\udcff' has characters that no UTF-8 text has"
        ):
            op.evaluate(log, policies=policies)
    with pytest.raises(op.UsageError, match="no UTF-8 text"):
        op.cross_fit(LOG, WALK, policy={"\udcff": EAGER})


def test_numpy_texts_are_names(log):
    ev = op.evaluate(log, policies={np.str_("a"): op.PolicyColumns(target_prob="target_prob")})
    assert ev["a", "step-is"].value == op.evaluate(log)["step-is"].value
