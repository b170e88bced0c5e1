"""Temporary folders go with their process, however it ends; what a killed one left goes at the next start."""

import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from cli import COMMAND
from logs import random_log
from offpolicy._util import scratch
from offpolicy._util.files import write_json
from offpolicy._util.scratch import ScratchFolder, sweep

HOLDS = """
import sys, time
from pathlib import Path
from offpolicy._util.scratch import ScratchFolder
beside = Path(sys.argv[1]) / "result.json"
kept = [ScratchFolder(), ScratchFolder(beside=beside)]
print(*(folder.path for folder in kept), flush=True)
time.sleep(600)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A place for temporary folders, for this process and those that it starts."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(scratch, "_swept", set())
    return folder


def started(script, *arguments):
    words = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_killed_process_left_is_swept_at_the_next_start(place, tmp_path, how):
    with started(HOLDS, tmp_path) as process:
        left = [Path(word) for word in process.stdout.readline().split()]
        assert all(folder.is_dir() for folder in left)
        assert sweep(place) == []  # while it lives
        assert sweep(tmp_path) == []
        process.send_signal(how)
        process.communicate(timeout=60)
    assert all(folder.is_dir() for folder in left)
    ScratchFolder()
    write_json(tmp_path / "result.json", {})
    assert not any(folder.exists() for folder in left)
    assert (tmp_path / "result.json").read_text() == "{}\n"


def test_what_is_not_surely_ours_is_left_alone(place, monkeypatch):
    target = place / "theirs"
    target.mkdir()
    (place / "offpolicy-link").symlink_to(target)
    (place / "offpolicy-file").touch()
    (place / "offpolicy-unlocked").mkdir()
    (place / "offpolicy-other").mkdir()
    (place / "offpolicy-other" / "lock").touch()
    before = {path.name for path in place.iterdir()}
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)  # all of them are another user's
    assert sweep(place) == []
    monkeypatch.setattr(os, "geteuid", lambda: own)
    assert [path.name for path in sweep(place)] == ["offpolicy-other"]
    assert {path.name for path in place.iterdir()} == before - {"offpolicy-other"}


def test_a_fork_removes_no_folder_of_its_parent(place):
    folder = ScratchFolder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the child does next to nothing
        child = os.fork()
    if not child:
        folder.remove()
        os._exit(0)
    os.waitpid(child, 0)
    assert folder.path.is_dir()
    folder.remove()
    assert not folder.path.exists()


def test_a_place_that_cannot_be_read_is_no_error(tmp_path):
    assert sweep(tmp_path / "absent") == []


SORTS = """
import sys, time
from offpolicy.logs import sort
from offpolicy.cli import main
before = sort._tidy

def slow(source, names, columns, dedupe, go_on):
    found = before(source, names, columns, dedupe, go_on)
    print("sorted", flush=True)
    time.sleep(600)
    return found

sort._tidy = slow
sys.exit(main(["evaluate", sys.argv[1], "--order", "any"]))
"""


@pytest.mark.parametrize(("how", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_command_that_is_ended_leaves_nothing(place, tmp_path, how, code):
    path = tmp_path / "log.parquet"
    random_log(seed=11, episodes=8, horizon=6).write_parquet(path)
    with started(SORTS, path) as process:
        assert process.stdout.readline() == "sorted\n"
        assert list(place.iterdir())
        process.send_signal(how)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in errors) == (code, False)
    assert not list(place.iterdir())


def test_an_applications_own_way_with_sigterm_is_kept(tmp_path):
    path = tmp_path / "log.parquet"
    random_log(seed=11, episodes=8, horizon=6).write_parquet(path)
    script = """
import signal, sys
from offpolicy.cli import main

own = lambda *_: None
signal.signal(signal.SIGTERM, own)
main(["check", sys.argv[1]])
print(signal.getsignal(signal.SIGTERM) is own)
"""
    with started(script, path) as process:
        output, _ = process.communicate(timeout=60)
    assert output.endswith("True\n")


@pytest.mark.parametrize("command", [COMMAND, (str(Path(sys.executable).with_name("offpolicy")),)])
def test_ctrl_c_during_the_import_ends_with_130_and_no_traceback(command, tmp_path):
    """A module that takes long to import stands for a slow disk."""
    (tmp_path / "sitecustomize.py").write_text(SLOW_IMPORT)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen(
        [*command, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output, errors) == (130, "", "interrupted: nothing was written\n")


SLOW_IMPORT = """
import importlib.abc
import sys
import time


class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "polars":
            print("importing", flush=True)
            time.sleep(600)


sys.meta_path.insert(0, Slow())
"""
