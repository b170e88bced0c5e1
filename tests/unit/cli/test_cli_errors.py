"""What is refused ends with 1, wrong usage with 2, Ctrl-C with 130; nothing is ever half-written."""

import json
import math
import signal
import subprocess
import sys
import time

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from cli import offpolicy, process
from logs import file_pieces, speaking_log
from offpolicy.cli import main

HERE = (pl.col("episode") == 202) & (pl.col("step") == 1)


def cell(column, value):
    return lambda log: log.with_columns(pl.when(HERE).then(pl.lit(value)).otherwise(column).alias(column))


def rows(*indices):
    return lambda log: log[list(indices)]


def shifted(log):
    return log.with_columns(step=pl.when(pl.col("episode") == 303).then(pl.col("step") + 1).otherwise("step"))


def truncated(log):
    return log.with_columns(truncated=HERE)[[*range(6), *range(7, 13)]]


#: How to spoil a log, the kind of the problem, and the options that make it good again.
BAD_LOGS = {
    "no chance to be logged": (cell("behavior_prob", 0.0), "not-positive", None),
    "negative probability": (cell("behavior_prob", -0.5), "not-positive", None),
    "probability NaN": (cell("behavior_prob", math.nan), "nan", None),
    "probability null": (cell("behavior_prob", None), "null", None),
    "probability infinite": (cell("behavior_prob", math.inf), "infinite", None),
    "probability above one": (cell("target_prob", 1.5), "above-one", ["--density"]),
    "unsorted": (rows(0, 2, 1, 3, 4, 5, 6), "unsorted", ["--order", "any"]),
    "reappears": (rows(0, 1, 4, 5, 6, 2, 3), "reappears", ["--order", "any"]),
    "duplicate": (rows(0, 1, 1, 2, 3, 4, 5, 6), "duplicate", ["--dedupe", "identical"]),
    "gap": (rows(0, 1, 3, 4, 5, 6), "gap", None),
    "another first step": (shifted, "first-step", None),
    "first step 2": (lambda log: log.with_columns(pl.col("step") + 2), "first-step", None),
    "truncated": (truncated, "truncated", ["--truncation", "as-terminal"]),
    "null": (cell("q_hat", None), "null", None),
    "NaN": (cell("reward", math.nan), "nan", None),
    "infinite": (cell("v_hat", -math.inf), "infinite", None),
    "inexact integer": (
        lambda log: cell("reward", 2**53 + 1)(log.with_columns(reward=pl.lit(1, pl.Int64))),
        "inexact-integer",
        None,
    ),
    "empty": (rows(), "empty", None),
}


@pytest.fixture
def log():
    return speaking_log()


@pytest.mark.parametrize("case", BAD_LOGS)
def test_a_bad_log_is_refused(log, tmp_path, case):
    spoil, kind, repair = BAD_LOGS[case]
    path, out = tmp_path / "bad.parquet", tmp_path / "result.json"
    spoil(log).write_parquet(path)
    run = offpolicy("evaluate", path, "--json", "--out", out)
    assert run.code == 1
    assert not out.exists()
    error = run.document["error"]
    assert error["type"] == "BadLogError"
    assert kind in {problem["kind"] for problem in error["problems"]}
    assert run.err.startswith("error: the log has ")
    assert f"[{kind}]" in run.err
    if kind != "empty":
        assert {problem["file"] for problem in error["problems"]} == {str(path)}
        assert all(problem["episode"] in (101, 202, 303, 404) for problem in error["problems"])
        assert all(problem["step"] is not None for problem in error["problems"])
    run = offpolicy("check", path)
    assert run.code == 1
    assert kind in run.out
    if repair:
        assert offpolicy("evaluate", path, *repair).code == 0


def test_a_target_probability_of_zero_is_valid(log, tmp_path):
    path = tmp_path / "log.parquet"
    cell("target_prob", 0.0)(log).write_parquet(path)
    assert offpolicy("evaluate", path).code == 0


def test_an_episode_over_files_is_joined_and_overlapping_files_are_refused(log, tmp_path):
    first, second = file_pieces(log, tmp_path, [6])
    assert offpolicy("evaluate", second, first).code == 0
    pl.concat([log[5:6], pl.read_parquet(second)]).write_parquet(second)
    run = offpolicy("evaluate", first, second, "--json")
    assert run.code == 1
    assert {problem["episode"] for problem in run.document["error"]["problems"]} == {202}


def test_a_wrong_dtype_is_refused(log, tmp_path):
    path = tmp_path / "bad.parquet"
    log.with_columns(pl.col("reward").cast(pl.String)).write_parquet(path)
    run = offpolicy("evaluate", path)
    assert (run.code, run.out) == (1, "")
    assert "reward" in run.err


def test_weights_that_are_all_zero_leave_no_weighted_estimate(log, tmp_path):
    path = tmp_path / "zero.parquet"
    log.with_columns(target_prob=pl.when(pl.col("step") == 1).then(0.0).otherwise("target_prob")).write_parquet(path)
    run = offpolicy("evaluate", path, "--estimator", "step-wis")
    assert (run.code, run.out) == (1, "")
    assert "t = 2" in run.err
    log.with_columns(target_prob=0.0).write_parquet(path)
    run = offpolicy("evaluate", path, "--estimator", "is", "--estimator", "step-is")
    assert run.code == 0
    assert "is, step-is: every weight of policy 'target' is zero" in run.out
    run = offpolicy("evaluate", path, "--estimator", "is", "--json")
    (row,) = run.document["estimates"]
    assert (row["value"], row["low"], row["high"]) == (0.0, None, None)


def test_one_huge_weight_is_in_the_verdict(log, tmp_path):
    path = tmp_path / "heavy.parquet"
    cell("behavior_prob", 1e-9)(log).write_parquet(path)
    run = offpolicy("evaluate", path)
    assert run.code == 0
    assert run.out.startswith("unusable: ")


def test_exit_codes_reach_the_shell(log_file, tmp_path):
    assert process("evaluate", log_file).code == 0
    run = process("evaluate", tmp_path / "absent.parquet")
    assert (run.code, run.out, run.err) == (1, "", f"error: {tmp_path / 'absent.parquet'}: no such file\n")
    assert process("evaluate").code == 2


@pytest.mark.parametrize("part", [0, 0.5, 0.9])
@pytest.mark.parametrize("command", ["evaluate", "check"])
def test_a_cut_file_is_named(log, tmp_path, command, part):
    path, out = tmp_path / "cut.parquet", tmp_path / "result.json"
    log.write_parquet(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(part * len(content))])
    run = offpolicy(command, path, "--json", *(("--out", out) if command == "evaluate" else ()))
    assert run.code == 1
    assert run.document["error"]["type"] == "BadFileError"
    assert "cut.parquet" in run.err
    assert not out.exists()


@pytest.mark.parametrize("name", ["absent.parquet", "absent-*.parquet", "."])
def test_an_absent_file_is_named(tmp_path, name):
    run = offpolicy("evaluate", tmp_path / name)
    assert (run.code, run.out) == (1, "")
    assert run.err.startswith(f"error: {tmp_path / name}: no ")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--column", "reward=gain"], "gain"),
        (["--policy", "new=pa"], "pa"),
        (["--column", "target_prob=behavior_prob", "--column", "q_hat=qq"], "qq"),
    ],
)
def test_a_missing_column_is_refused(log_file, arguments, word):
    run = offpolicy("evaluate", log_file, *arguments, "--json")
    assert run.code == 1
    assert run.document["error"]["type"] == "MissingColumnError"
    assert word in run.err


def test_messages_speak_of_options(log, tmp_path):
    path = tmp_path / "log.parquet"
    log.drop("q_hat").write_parquet(path)
    assert "--column q_hat=" in offpolicy("evaluate", path, "--estimator", "dr").err
    assert "--baseline" in offpolicy("evaluate", path, "--estimator", "dr-bsl").err
    log[[0, 2, 1, 3]].write_parquet(path)
    assert "--order any" in offpolicy("evaluate", path).err
    assert "--order any" in offpolicy("check", path).out


WRONG_USAGE = {
    "unknown option": ["--discnt", "0.9"],
    "no number": ["--discount", "high"],
    "discount": ["--discount", "1.5"],
    "discount NaN": ["--discount", "nan"],
    "estimator": ["--estimator", "drr"],
    "horizon": ["--horizon", "0"],
    "threads": ["--threads", "0"],
    "confidence": ["--confidence", "1"],
    "interval": ["--interval", "guess"],
    "baseline": ["--baseline", "inf"],
    "dr-bsl without baseline": ["--estimator", "dr-bsl"],
    "column without a name": ["--column", "reward"],
    "column without a role": ["--column", "rewrd=reward"],
    "column twice": ["--column", "reward=reward", "--column", "reward=q_hat"],
    "policy without a column": ["--policy", "new="],
    "policy twice": ["--policy", "new=target_prob", "--policy", "new=behavior_prob"],
    "policy with a column twice": ["--policy", "new=target_prob,q_hat=q_hat,q_hat=v_hat"],
    "policy named behavior": ["--policy", "behavior=target_prob"],
    "mixture of nothing": ["--policy", "half=mix:new:0.5"],
    "mixture without alpha": ["--policy", "new=target_prob", "--policy", "half=mix:new"],
    "alpha": ["--policy", "new=target_prob", "--policy", "half=mix:new:2"],
    "order": ["--order", "some"],
    "range": ["--reward-range", "0"],
    "range the wrong way": ["--reward-range", "1,0"],
    "bounds without rewards": ["--ratio-bound", "2"],
    "out without a folder": ["--out", "no-such-folder/result.json"],
    "out is a folder": ["--out", "."],
}


@pytest.mark.parametrize("case", WRONG_USAGE)
def test_wrong_usage_ends_with_2(log_file, capsys, case):
    assert main(["evaluate", str(log_file), *WRONG_USAGE[case]]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert main(["evaluate", str(log_file), *WRONG_USAGE[case], "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["type"] == "UsageError"
    assert error["message"]


@pytest.mark.parametrize("arguments", [[], ["evaluate"], ["check"], ["evalute"], ["demo", "more"]])
def test_a_command_that_is_not_complete_ends_with_2(capsys, arguments):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err


def test_out_never_overwrites_a_log(log_file, capsys):
    before = log_file.read_bytes()
    assert main(["evaluate", str(log_file), "--out", str(log_file)]) == 2
    assert log_file.read_bytes() == before


def test_a_bug_of_ours_is_not_hidden(log_file, monkeypatch):
    def evaluate(*_arguments, **_settings):
        raise ZeroDivisionError

    monkeypatch.setattr(op, "evaluate", evaluate)
    with pytest.raises(ZeroDivisionError):
        main(["evaluate", str(log_file)])


#: The command line, but it says when the scan begins.
SPEAKING = """
import sys
from offpolicy import _core
from offpolicy.cli import main

real = _core.scan_parquet

def scan_parquet(*arguments):
    print("running", file=sys.stderr, flush=True)
    return real(*arguments)

_core.scan_parquet = scan_parquet
sys.exit(main())
"""


@pytest.fixture
def long_log(tmp_path):
    """One file under many names: minutes of reading; that its episodes repeat would be found at the end."""
    episodes = np.repeat(np.arange(200_000), 10)
    steps = np.tile(np.arange(10), 200_000)
    numbers = np.random.default_rng(1).uniform(0.1, 1.0, (3, episodes.size))
    names = ("reward", "behavior_prob", "target_prob")
    frame = pl.DataFrame({"episode": episodes, "step": steps, **dict(zip(names, numbers, strict=True))})
    folder = tmp_path / "long"
    folder.mkdir()
    frame.write_parquet(folder / "0.parquet", compression="zstd")
    for name in range(1, 500):
        (folder / f"{name}.parquet").hardlink_to(folder / "0.parquet")
    return folder


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_ctrl_c_ends_at_once_with_130_and_nothing_written(long_log, tmp_path, options):
    results = tmp_path / "results"
    results.mkdir()
    arguments = ["evaluate", long_log, "--out", results / "result.json", *options]
    with subprocess.Popen(
        [sys.executable, "-c", SPEAKING, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr.readline() == "running\n"
            sent = time.monotonic()
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=60)
            took = time.monotonic() - sent
        finally:
            process.kill()
    assert process.returncode == 130
    assert output == ""
    assert errors.strip() == "interrupted: nothing was written"
    assert list(results.iterdir()) == []
    assert took < 5  # a second is promised; the whole scan would take minutes
