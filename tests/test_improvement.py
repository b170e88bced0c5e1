"""The result of a safe improvement, as a sentence, a document and a figure."""

import json
from dataclasses import replace

import offpolicy as op
import polars as pl
import pytest
from improving import EAGER, LOG, POLICIES, SMALL, WALK, by_policies


def test_it_is_saved_as_a_document_and_a_figure(tmp_path):
    best = op.improve(LOG, WALK, generator=SMALL)
    assert best.save(tmp_path / "out") == [tmp_path / "out" / name for name in ("improvement.json", "improvement.svg")]
    document = json.loads((tmp_path / "out" / "improvement.json").read_text())
    assert document == json.loads(json.dumps(best.to_dict()))
    figure = (tmp_path / "out" / "improvement.svg").read_text()
    assert all(name in figure for name in best.candidates["candidate"])
    assert "behaviour policy" in figure
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["improvement.json", "improvement.svg", "out"]


@pytest.mark.parametrize(("suffix", "begins"), [("json", b"{"), ("png", b"\x89PNG")])
def test_it_is_saved_as_what_the_file_is_called(suffix, begins, tmp_path):
    file = tmp_path / f"best.{suffix}"
    assert by_policies().save(file) == [file]
    assert file.read_bytes().lstrip().startswith(begins)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(op.UsageError, match="a result is a folder, or a file"):
        by_policies().save(tmp_path / "best.pdf")
    assert not list(tmp_path.iterdir())


def test_names_cannot_leave_the_figure(tmp_path):
    name = "</script><script>alert(1)</script>"
    best = op.improve(LOG, WALK, generator={name: EAGER}, estimator="step-is")
    best.save(tmp_path / "best.svg")
    assert "&lt;script&gt;alert(1)" in (tmp_path / "best.svg").read_text()


def test_the_figure_has_every_candidate_and_colours_the_winner():
    best = by_policies()
    rows = [row for rows in best.plot().to_dict()["datasets"].values() for row in rows if "candidate" in row]
    assert [row["candidate"] for row in rows] == list(POLICIES)
    assert [row["score"] for row in rows] == best.candidates["score"].to_list()
    assert [row["candidate"] for row in rows if row["winner"]] == [best.winner]


def test_a_wild_candidate_does_not_hide_the_others():
    from offpolicy.improvement_picture import limits

    best = op.improve(LOG, WALK, generator=SMALL)
    low, high, cut = limits(best)
    assert not cut
    assert low < best.candidates["score"].min() < best.candidates["value"].max() < high
    wild = best.candidates.with_columns(score=pl.when(pl.col("rank") == 6).then(-1e6).otherwise("score"))
    low, high, cut = limits(replace(best, candidates=wild))
    assert cut
    assert -1e3 < low < best.behavior.value < best.highest["score"] < high


def test_it_reads_as_a_recommendation():
    best = by_policies(caution=2.0)
    first, second, *_ = str(best).splitlines()
    assert first.startswith(f"take '{best.winner}' with V - 2σ = ")
    assert second.startswith("a bound alone holds with confidence 0.9772 (asymptotic)")
    assert best.winner in str(best)
    alone = op.improve(LOG, WALK, generator={"eager": EAGER}, estimator="step-is", caution=2.0)
    assert alone.promise == "a bound alone holds with confidence 0.9772 (asymptotic)"
