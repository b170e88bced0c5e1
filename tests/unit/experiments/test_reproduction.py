"""A reproduction of any experiment: what it needs, draws, notes of its time, and says where it is interrupted."""

import json
from dataclasses import replace

import offpolicy as op
import polars as pl
import pytest
from cli import offpolicy
from coin import Coin
from installed import install_studies
from offpolicy.experiments import reproduction
from offpolicy.experiments.claims import Claim
from offpolicy.experiments.experiment import Study
from offpolicy.extensions import plugins


class Flips(Coin):
    def settings(self):
        return super().settings() | {"domain": "Coin(sides=2)"}


def numbers(experiment, runs):
    return pl.DataFrame(runs), []


def drawing(table, title, subtitle):
    return table.to_dicts(), title, subtitle


@pytest.fixture
def saved(monkeypatch):
    """What was drawn, by file; nothing is rendered."""
    found = {}
    monkeypatch.setattr(reproduction.plotting, "save", lambda chart, path: found.update({path: chart}))
    return found


@pytest.fixture
def coin(monkeypatch, saved):
    """One small experiment, and no other."""
    study = Study("Coins (2026), Fig. 0", "gymnasium", 5, 2, Flips, numbers, drawing)
    install_studies(monkeypatch, {"coin": study})
    return study


def test_a_figure_is_drawn_again_from_the_result_alone(coin, saved, tmp_path):
    result = reproduction.reproduce("coin", runs=2, out=tmp_path, workers=1)
    assert (tmp_path / "result.json").read_text() == json.dumps(result.to_dict(), indent=1) + "\n"
    chart = (result.numbers.to_dicts(), "coin: 2 runs", "Coin(sides=2)")
    assert saved == {tmp_path / "figure.svg": chart, tmp_path / "figure.png": chart}
    saved.clear()
    (tmp_path / "runs.jsonl").unlink()
    reproduction.redraw(tmp_path)
    assert saved == {tmp_path / "figure.svg": chart, tmp_path / "figure.png": chart}


@pytest.mark.parametrize("damaged", [b"", b"{", b"\xff", b"[]", b'{"experiment": "coin", "settings": 1}'])
def test_a_damaged_result_is_not_drawn_but_named(coin, saved, tmp_path, damaged):
    (tmp_path / "result.json").write_bytes(damaged)
    with pytest.raises(op.BadFileError, match=r"result\.json: it is damaged .* resume=True"):
        reproduction.redraw(tmp_path)
    assert not saved


def test_what_a_later_experiment_needs_is_asked_for_before_any_run(coin, tmp_path, monkeypatch):
    lacking = replace(coin, needs=("no_such_module", "recurrent"))
    install_studies(monkeypatch, {"coin": coin, "other": lacking})
    run = offpolicy("reproduce", "all", "--quick", "--workers", 1, "--out", tmp_path)
    assert run.code == 1
    assert "to reproduce other, install the extra 'recurrent': pip install 'offpolicy[recurrent]'" in run.err
    assert not list(tmp_path.iterdir())


def test_a_reproduction_ends_with_one_row_per_claim_and_the_evidence_on_request(coin, tmp_path, monkeypatch):
    claims = [Claim("A beats B", "held", "RMSE A 1, B 2, t = -9"), Claim("B beats C", "undecided", "RMSE B 2, C 2")]
    claiming = replace(coin, read=lambda experiment, runs: (pl.DataFrame(runs), claims))
    install_studies(monkeypatch, {"coin": claiming})
    run = offpolicy("reproduce", "coin", "--quick", "--workers", 1, "--out", tmp_path)
    assert run.code == 0
    rows = [line.split() for line in run.out.splitlines() if "beats" in line]
    assert rows == [["A", "beats", "B", "held"], ["B", "beats", "C", "undecided"]]
    assert "RMSE" not in run.out
    assert "--evidence" in run.out
    document = json.loads((tmp_path / "coin" / "result.json").read_text())
    assert [claim["evidence"] for claim in document["claims"]] == [claim.evidence for claim in claims]
    asked = offpolicy("reproduce", "coin", "--quick", "--workers", 1, "--out", tmp_path, "--resume", "--evidence")
    for claim in claims:
        assert claim.evidence in asked.out


def test_without_any_experiment_the_error_says_what_to_install(monkeypatch, tmp_path):
    install_studies(monkeypatch, {}, without="offpolicy-paper")
    for name in ("mountain-car", "all"):
        run = offpolicy("reproduce", name, "--quick", "--out", tmp_path)
        assert (run.code, run.out) == (1, "")
        assert "no experiment is installed" in run.err
        assert "pip install offpolicy-paper" in run.err
    assert not list(tmp_path.iterdir())


def test_an_unknown_experiment_is_answered_by_those_there_are(coin, monkeypatch, tmp_path):
    run = offpolicy("reproduce", "mountain-car", "--out", tmp_path)
    assert run.code == 2
    assert "there is no experiment 'mountain-car'; there are coin" in run.err
    assert "install" not in run.err
    install_studies(monkeypatch, {"coin": coin}, without="offpolicy-paper")
    run = offpolicy("reproduce", "mountain-car", "--out", tmp_path)
    assert run.code == 2
    assert "pip install offpolicy-paper" in run.err


def test_a_broken_package_of_the_paper_is_named(coin, monkeypatch, tmp_path):
    for plugin in plugins.registry().plugins:
        if plugin.package == "offpolicy-paper":
            plugin.error = "ImportError: altair"
    run = offpolicy("reproduce", "mountain-car", "--out", tmp_path)
    assert run.code == 2
    assert "plugin 'paper' is broken (ImportError: altair)" in " ".join(run.err.split())


def reproduced(folder, runs, **options):
    reproduction.reproduce("coin", out=folder, runs=runs, workers=1, **options)
    return [call["runs"] for call in json.loads((folder / "time.json").read_text())]


def test_the_time_is_that_of_the_runs_of_a_call(coin, tmp_path):
    assert reproduced(tmp_path, 3) == [3]
    assert reproduced(tmp_path, 5, resume=True) == [3, 2]
    assert reproduced(tmp_path, 5, resume=True) == [3, 2]


@pytest.mark.parametrize("damaged", [b"[{", b"\xff\xfe", b"", b"{}"])
def test_a_damaged_time_costs_no_result(coin, tmp_path, damaged):
    (tmp_path / "time.json").write_bytes(damaged)
    assert reproduced(tmp_path, 2) == [2]
    assert (tmp_path / "result.json").exists()


@pytest.mark.parametrize("begun", [False, True])
def test_an_interrupted_command_says_where_the_runs_are_if_there_are_any(coin, tmp_path, monkeypatch, begun):
    def interrupted(*_, **__):
        if begun:
            (tmp_path / "coin").mkdir()
            (tmp_path / "coin" / "runs.jsonl").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduction, "reproduce", interrupted)
    run = offpolicy("reproduce", "coin", "--out", tmp_path)
    assert run.code == 130
    where = f": the runs that were done are in {tmp_path / 'coin'}; --resume goes on" if begun else " before any run"
    assert run.err == f"interrupted{where}\n"
