"""The attacks of tools/attacks as byte-level fuzz tests of every decoder, and their runner, which misses no crash.

Files of runs and Parquet files are tried in 2,000 cases each, and 100,000 with `--hypothesis-profile=thorough`; states
and sketches likewise in tests/unit/evaluation/test_states.py.
"""

import json
from pathlib import Path

import pytest
from attacks import run
from attacks.outcomes import FAILURE
from attacks.page import page
from hypothesis import settings
from places import ROOT

FUZZED = 2_000


def failures(kind: str, cases: int) -> dict[int, str]:
    """Return what failed of so many cases, tried in chunks as the runner tries them."""
    found = {}
    for start in range(0, cases, run.CHUNK):
        found |= run.tried(kind, start, min(start + run.CHUNK, cases))
    assert sorted(found) == list(range(cases))
    return {number: outcome for number, outcome in found.items() if outcome.startswith(FAILURE)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["damaged_parquet", "damaged_runs"])
def test_no_damaged_file_gives_a_wrong_number_or_an_error_that_is_not_ours(kind):
    assert failures(kind, max(FUZZED, settings().max_examples)) == {}


@pytest.mark.parametrize(("kind", "cases"), [("arrow_objects", 300), ("changed_files", 40), ("forged_states", 200)])
def test_no_other_attack_succeeds(kind, cases):
    assert failures(kind, cases) == {}


@pytest.mark.slow
def test_no_signal_leaves_anything():
    assert failures("kills", 12) == {}


DYING = """
import os, sys, time

def case(number, folder):
    match number:
        case 1:
            os.abort()
        case 2:
            raise RuntimeError("raw")
        case 3:
            print("thread 'main' panicked at 'index out of bounds'", file=sys.stderr)
        case 4:
            time.sleep(600)
    return "refused"
"""


def test_the_runner_counts_an_abort_an_exception_a_panic_and_a_hang(tmp_path, monkeypatch):
    (tmp_path / "attacks").mkdir()
    (tmp_path / "attacks" / "dying.py").write_text(DYING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(run, "PATIENCE", 10.0)
    found = run.tried("dying", 0, 6)
    assert [found[number].split(":")[0] for number in range(6)] == ["refused", *[FAILURE] * 4, "refused"]
    for number, said in {1: "exit code -6", 2: "RuntimeError: raw", 3: "panicked", 4: "no end within 10 s"}.items():
        assert said in found[number]


def test_an_interrupted_run_goes_on_behind_its_finished_chunks(tmp_path, monkeypatch):
    asked = []

    def tried(kind, start, end):
        asked.append((start, end))
        return dict.fromkeys(range(start, end), "refused")

    monkeypatch.setattr(run, "tried", tried)
    for _ in range(2):
        entry = run.counted("damaged_runs", 1200, tmp_path / "log.jsonl")
        assert (entry["tried"], entry["survived"], entry["outcomes"]) == (1200, 1200, {"refused": 1200})
    assert asked == [(0, 500), (500, 1000), (1000, 1200)]


def test_the_page_is_that_of_the_result_which_has_no_failure():
    result = json.loads((ROOT / "docs" / "results" / "attacks.json").read_text())
    assert (ROOT / "docs" / "robustness.md").read_text() == page(result)
    least = {"damaged_parquet": 15_000, "forged_states": 24_000, "damaged_runs": 1_500, "kills": 100}
    least |= {"changed_files": 50, "arrow_objects": 100}
    assert {kind: entry["failures"] for kind, entry in result["attacks"].items()} == {kind: {} for kind in least}
    assert all(result["attacks"][kind]["tried"] >= cases for kind, cases in least.items())
    assert (
        set(run.KINDS)
        == set(least)
        == {Path(f).stem for f in (ROOT / "tools/attacks").glob("*.py")}
        - {
            "run",
            "worker",
            "page",
            "outcomes",
        }
    )
