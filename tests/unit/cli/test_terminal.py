"""At a terminal of 80 columns tables fit, progress counts each row once, help is whole, and names are completed."""

import os
import subprocess

import offpolicy as op
import polars as pl
import pytest
from cli import COMMAND, offpolicy
from logs import random_log
from offpolicy.cli import show
from offpolicy.testing import Walk
from rich.console import Console
from rich.progress import Progress, Task

LONG = "a-policy-with-a-name-that-is-far-too-long-for-a-narrow-table"


@pytest.fixture
def at_80(monkeypatch):
    """What is shown at a terminal with 80 columns, line by line."""
    console = Console(width=80, force_terminal=True, color_system=None, record=True, highlight=False, markup=False)
    for module in ("show_improvement", "show_reproduction"):
        monkeypatch.setattr(f"offpolicy.cli.{module}.stdout", lambda: console)
    monkeypatch.setattr(show, "stdout", lambda: console)  # last: the modules above take it when they are imported
    return lambda: console.export_text(clear=False).splitlines()


SCALES = {"plain": 1.0, "large": 12_345_678.9, "huge": 3e17, "tiny": 3e-13}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["new", LONG])
def test_estimates_fit_80_columns_with_whole_numbers(tmp_path, at_80, scale, name):
    log = random_log(31, episodes=3000, horizon=4)
    money = ("reward", "q_hat", "v_hat", "r_hat")
    path = tmp_path / "log.parquet"
    log.with_columns(pl.col(column) * SCALES[scale] for column in money).write_parquet(path)
    columns = "target_prob,q_hat=q_hat,v_hat=v_hat,r_hat=r_hat"
    run = offpolicy(
        "evaluate", path, "--policy", f"{name}={columns}", "--policy", f"half=mix:{name}:0.5", "--diagnostics"
    )
    assert run.code == 0
    shown = at_80()
    assert max(map(len, shown)) <= 80
    ev = op.evaluate(path, policies={"new": op.PolicyColumns(target_prob="target_prob")}, estimators=["step-is"])
    number = show.rounding(op.evaluate(path))
    assert any(number(ev["step-is"].value) in line for line in shown)
    assert not any("…" in line.replace(" … ", "") for line in shown if "step-is" in line)


def test_the_demo_fits_80_columns_at_a_terminal_and_in_a_pipe(at_80):
    piped = subprocess.run([*COMMAND, "demo"], capture_output=True, text=True, check=True).stdout
    table = [line for line in piped.splitlines() if line.startswith(("policy", "target", "behavior", "─", "true"))]
    assert len(table) == 14
    assert max(map(len, table)) <= 80
    offpolicy("demo")
    assert "ess" in " ".join(at_80())
    assert max(map(len, at_80())) <= 80


def test_what_is_left_out_of_a_table_is_said(tmp_path, at_80):
    log = random_log(31, episodes=3000, horizon=4).with_columns(pl.col("reward") * 12_345_678.9)
    log.write_parquet(tmp_path / "log.parquet")
    offpolicy("evaluate", tmp_path / "log.parquet", "--estimator", "step-is")
    assert any(line.startswith("no room for ess") for line in at_80())


def test_drivers_and_check_fit_80_columns(tmp_path, at_80):
    walk = Walk()
    path, bad = tmp_path / "walk.parquet", tmp_path / f"{LONG}.parquet"
    log = walk.simulate(walk.behavior, 300, seed=1)
    log.write_parquet(path)
    show.evaluation(op.cross_fit(path, walk, policy={LONG: walk.policies["eager"]}).evaluation)
    cf = op.cross_fit(path, walk, policy={LONG: walk.policies["eager"]}, estimators=["step-is", "dr"])
    show.evaluation(cf.evaluation, folds=cf.folds)
    from offpolicy.cli import show_improvement

    show_improvement.improvement(op.improve(path, walk, generator={LONG: walk.policies["eager"]}))
    log.with_columns(reward=float("nan")).write_parquet(bad)
    show.report(op.check(bad, limit=5))
    plugin = {"name": "x" * 30, "package": "y" * 30, "version": "1.0", "brings": {"domains": [LONG, LONG]}}
    show.plugins([plugin | {"error": None, "warnings": []}])
    assert max(map(len, at_80())) <= 80


def amount(done, total):
    bar = Progress(disable=True)
    bar.add_task("", total=total, completed=done)
    task: Task = bar.tasks[-1]
    return show.Amount("rows").render(task).plain


def test_progress_says_nothing_of_what_nobody_knows():
    assert amount(0, None) == ""
    assert amount(0, 0) == ""
    assert amount(1200, None) == "1,200 rows"
    assert amount(0, 5000) == "0 of 5,000 rows"


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("mapped", [False, True])
def test_progress_counts_a_row_once_and_ends_with_the_log(tmp_path, passes, mapped):
    log, told = random_log(7, episodes=500, horizon=6), []
    log.write_parquet(tmp_path / "log.parquet")
    chosen = {"map": map} if mapped else {}
    estimators = ["step-is"] if passes == 1 else ["step-wis"]
    op.evaluate(
        tmp_path / "log.parquet", estimators=estimators, progress=lambda *two: told.append(two), passes=passes, **chosen
    )
    assert {total for _, total in told} == {log.height}
    done = [done for done, _ in told]
    assert done == sorted(done)
    assert done[-1] == log.height


def test_help_summaries_are_whole():
    for width in ("50", "80", "110"):
        run = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True, env=os.environ | {"COLUMNS": width})
        assert "..." not in run.stdout.partition("Commands:")[2]
        assert " ".join(run.stdout.split()).endswith("Simulate a policy in a domain and write its log.")


def completed(*words):
    """What bash would be offered for the last word."""
    line = " ".join(["offpolicy", *words])
    environment = os.environ | {
        "_OFFPOLICY_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words)),
    }
    run = subprocess.run(COMMAND, capture_output=True, text=True, env=environment, check=True)
    return [tuple(row.split(",", 1)) for row in run.stdout.splitlines()]


OFFERED = {
    ("eval",): ("plain", "evaluate"),
    ("evaluate", "--estimator", "step"): ("plain", "step-wis"),
    ("evaluate", "--estimator", "dr,ma"): ("plain", "dr,magic"),
    ("evaluate", "--interval", "boot"): ("plain", "bootstrap-bca"),
    ("cross-fit", "--domain", "mount"): ("plain", "mountain-car"),
    ("simulate", "sail"): ("plain", "sailing"),
    ("improve", "--generator", "mix"): ("plain", "mixture"),
    ("improve", "--estimator", "dr-"): ("plain", "dr-bsl"),
    ("cross-fit", "--fitter", "tab"): ("plain", "tabular"),
    ("reproduce", "saf"): ("plain", "safe-improvement"),
    ("evaluate", "log"): ("file", "log"),
}


@pytest.mark.parametrize("words", OFFERED, ids=" ".join)
def test_the_shell_completes(words):
    assert OFFERED[words] in completed(*words)


def test_the_script_for_the_shell_is_to_be_had_as_documented():
    environment = os.environ | {"_OFFPOLICY_COMPLETE": "zsh_source"}
    run = subprocess.run(COMMAND, capture_output=True, text=True, env=environment, check=True)
    assert "#compdef offpolicy" in run.stdout
