"""Runs of an experiment: the same numbers for any number of processes, any interruption, any dead process."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import offpolicy as op
import pytest
from coin import Coin
from offpolicy.experiments.claims import as_good, better, every, greater, no_less
from offpolicy.experiments.runs import complete
from places import ROOT


@pytest.fixture
def expected(tmp_path):
    (tmp_path / "whole").mkdir()
    return complete(Coin(), 7, seed=5, folder=tmp_path / "whole", workers=1)


def test_runs_differ_and_depend_on_the_seed_alone(expected, tmp_path):
    assert len({run["x"] for run in expected}) == 7
    again = complete(Coin(), 7, seed=5, folder=tmp_path, workers=2)
    assert again == expected
    assert complete(Coin(), 7, seed=5, folder=tmp_path, resume=True, workers=1) == expected


@pytest.mark.parametrize("lost", [1, 10, 60, 200])
def test_an_interrupted_file_goes_on_where_it_stopped(expected, tmp_path, lost):
    file = tmp_path / "whole" / "runs.jsonl"
    text = file.read_text()
    file.write_text(text[:-lost])
    seen = []
    resumed = complete(
        Coin(), 7, seed=5, folder=tmp_path / "whole", resume=True, workers=1, progress=lambda *done: seen.append(done)
    )
    assert resumed == expected
    assert [total for _, total in seen] == [7] * len(seen)
    assert [done for done, _ in seen] == list(range(8 - len(seen), 8))  # those that were there, then one after another
    assert 1 < len(seen) < 8
    assert file.read_text() == text


def test_progress_counts_runs_that_are_asked_for(expected, tmp_path):
    seen = []
    few = {"seed": 5, "folder": tmp_path / "whole", "resume": True, "workers": 1}
    complete(Coin(), 3, **few, progress=lambda *done: seen.append(done))
    complete(Coin(), 8, **few, progress=lambda *done: seen.append(done))
    assert seen == [(3, 3), (7, 8), (8, 8)]


def test_an_end_while_a_cut_line_is_dropped_loses_no_run(expected, tmp_path, monkeypatch):
    file = tmp_path / "whole" / "runs.jsonl"
    file.write_bytes(file.read_bytes()[:-9])
    before = file.read_text().splitlines()[:-1]

    def killed(path, *_, **__):
        path.open("w").close()
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", killed)
    with pytest.raises(KeyboardInterrupt):
        complete(Coin(), 7, seed=5, folder=file.parent, resume=True, workers=1)
    assert file.read_text().splitlines()[: len(before)] == before


@pytest.mark.parametrize(("line", "named"), [(0, "its head, line 1, is"), (2, "line 3 is"), (7, "line 8 is")])
def test_bytes_that_are_no_text_are_named(expected, tmp_path, line, named):
    file = tmp_path / "whole" / "runs.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    lines[line] = lines[line].replace(b'"', b"\xff", 1)
    file.write_bytes(b"".join(lines))
    with pytest.raises(op.BadFileError, match=rf"runs\.jsonl: {named} damaged"):
        complete(Coin(), 7, seed=5, folder=file.parent, resume=True, workers=1)
    assert file.read_bytes() == b"".join(lines)


def test_a_process_that_dies_takes_no_run_with_it(expected, tmp_path):
    assert complete(Coin(dies_in=str(tmp_path)), 7, seed=5, folder=tmp_path, workers=2) == expected
    assert (tmp_path / "died").exists()


def test_runs_of_other_settings_or_without_resume_are_refused(expected, tmp_path):
    with pytest.raises(op.UsageError, match="has runs already"):
        complete(Coin(), 7, seed=5, folder=tmp_path / "whole")
    with pytest.raises(op.OffPolicyError, match="other settings"):
        complete(Coin(bias=1.0), 7, seed=5, folder=tmp_path / "whole", resume=True)


def test_the_head_has_the_version_of_the_format(expected, tmp_path):
    file = tmp_path / "whole" / "runs.jsonl"
    head = json.loads(file.read_text().splitlines()[0])
    about = {"check": head["check"], "version": 2, "offpolicy": op.__version__}
    assert head == about | {"experiment": "coin", "seed": 5, "settings": {"bias": 0.0}}


@pytest.mark.parametrize("version", [0, 1, 3, "2", None, ...])
def test_runs_of_another_version_are_refused_and_left_alone(expected, tmp_path, version):
    file = tmp_path / "whole" / "runs.jsonl"
    first, *rest = file.read_text().splitlines()
    head = {**json.loads(first), "version": version}
    if version is ...:  # version 1, when it was not yet written down
        del head["version"]
    file.write_text(before := "\n".join([json.dumps(head), *rest, ""]))
    named = 1 if version is ... else version
    with pytest.raises(op.BadFileError, match=rf"runs\.jsonl: its runs have version {named!r} .* reads version 2"):
        complete(Coin(), 8, seed=5, folder=tmp_path / "whole", resume=True, workers=1)
    assert file.read_text() == before


@pytest.mark.parametrize("head", ['{"experiment": "co', "[1, 2]", ""])
def test_a_damaged_head_is_named(expected, tmp_path, head):
    file = tmp_path / "whole" / "runs.jsonl"
    file.write_text("\n".join([head, *file.read_text().splitlines()[1:], ""]))
    with pytest.raises(op.BadFileError, match=r"runs\.jsonl: its head, line 1, is damaged"):
        complete(Coin(), 7, seed=5, folder=tmp_path / "whole", resume=True, workers=1)


def test_a_claim_is_held_not_held_or_undecided():
    rng = np.random.default_rng(0)
    small, large = rng.normal(size=500), 3 * rng.normal(size=500)
    other = rng.normal(size=500)
    names = ("a", "b")
    assert better("", small, large, names).verdict == "held"
    assert better("", large, small, names).verdict == "not held"
    assert better("", small, other, names).verdict == "undecided"
    assert as_good("", large, small, names).verdict == "not held"
    assert as_good("", small, large, names).verdict == "held"
    assert as_good("", small, small, names).verdict == "held"  # within the margin, whatever their errors
    assert as_good("", small, other, names).verdict == "undecided"  # 500 runs of noise
    assert as_good("", small[:1], small[:1], names).verdict == "undecided"
    assert as_good("", small[:0], small[:0], names).verdict == "undecided"
    assert better("", np.array([1.0, 1.1]), np.array([2.0, 2.2]), names).verdict == "undecided"  # two runs: t = -21
    assert better("", small[:1], large[:1], names).verdict == "undecided"
    ones = np.ones(9)
    assert better("", 0 * ones, ones, names).verdict == "held"  # no spread, nine of one sign
    assert greater("", 2 * ones, ones, names).verdict == "held"
    assert greater("", small, small + 1, names).verdict == "not held"
    assert no_less("", ones, ones + 0.4, names, margin=0.5).verdict == "not held"  # behind beyond doubt
    assert no_less("", small, small, names, margin=0.5).verdict == "held"
    assert no_less("", small[:4], other[:4], names, margin=0.01).verdict == "undecided"
    parts = [better("", small, large, names), better("", small, other, names)]
    assert every("", parts).verdict == "undecided"
    assert every("", [*parts, better("", large, small, names)]).verdict == "not held"


def test_rounding_is_no_evidence():
    names, zeros = ("a", "b"), np.zeros(2)
    found = greater("", np.array([0.1 + 0.2, 0.3]), zeros, names)
    assert (found.verdict, found.evidence) == ("undecided", "a 0.3, b 0, t = inf")
    many = 1000
    near, far = np.full(many, 0.1 + 0.2), np.full(many, 0.3)  # differ in the last bit
    assert greater("", near, far, names).evidence == "a 0.3, b 0.3, t = -0.0"
    assert {greater("", *pair, names).verdict for pair in ((near, far), (far, near))} == {"undecided"}
    assert better("", far, near, names).verdict == "undecided"
    assert no_less("", near, far, names, margin=0.1).verdict == "held"
    assert greater("", near + 1e-9, far, names).verdict == "held"  # small, and no rounding
    small = 1e-30 * np.random.default_rng(0).normal(size=many)
    assert greater("", small + 1e-30, small * 0, names).verdict == "held"


@pytest.mark.parametrize(("runs", "verdict", "with_margin"), [(6, "undecided", "undecided"), (7, "undecided", "held"),
                                                              (8, "held", "held")])  # fmt: skip
def test_without_spread_the_sign_test_decides(runs, verdict, with_margin):
    names, ones = ("a", "b"), np.ones(runs)
    assert better("", 0 * ones, ones, names).verdict == verdict
    assert greater("", 2 * ones, ones, names).verdict == verdict
    assert greater("", ones, 2 * ones, names).verdict == verdict.replace("held", "not held")
    assert as_good("", ones, ones, names).verdict == with_margin
    assert no_less("", ones, ones, names, margin=0.5).verdict == with_margin


INTERRUPTED = """
import sys
from pathlib import Path
from coin import Coin
from offpolicy.experiments.runs import complete

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    complete(Coin(seconds=600), 7, seed=5, folder=folder, workers=2, progress=lambda done, _: print(done, flush=True))
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_end_of_any_kind_ends_all_processes_and_keeps_what_is_done(expected, tmp_path, how):
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED)
    folder = tmp_path / "cut"
    folder.mkdir()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "tests" / "support"), *sys.path])}
    command = [sys.executable, str(script), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        try:
            while process.stdout.readline() != "2\n":
                assert process.poll() is None
            process.send_signal(how)
            process.communicate(timeout=60)  # which none of them can write to any more; their runs take ten minutes
        finally:
            process.kill()
    assert process.returncode != 0
    assert len((folder / "runs.jsonl").read_text().splitlines()) == 3
    assert complete(Coin(), 7, seed=5, folder=folder, resume=True, workers=1) == expected


def test_a_damaged_line_is_named(expected, tmp_path):
    file = tmp_path / "whole" / "runs.jsonl"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:2], lines[2][:9], *lines[3:], ""]))
    with pytest.raises(op.BadFileError, match=r"runs\.jsonl.*line 3 is damaged"):
        complete(Coin(), 7, seed=5, folder=tmp_path / "whole", resume=True, workers=1)


def test_what_cannot_travel_is_refused(tmp_path):
    class Local(Coin):
        pass

    with pytest.raises(op.UsageError, match=r"cannot travel to other processes.*workers=1"):
        complete(Local(), 2, seed=0, folder=tmp_path, workers=2)


def test_the_environment_is_left_as_it_was(tmp_path, monkeypatch):
    monkeypatch.delenv("POLARS_MAX_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    complete(Coin(), 2, seed=0, folder=tmp_path, workers=2)
    assert "POLARS_MAX_THREADS" not in os.environ
    assert os.environ["OMP_NUM_THREADS"] == "3"
