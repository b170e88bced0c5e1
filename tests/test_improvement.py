"""The result of a safe improvement, as a sentence, a document, a figure and a command."""

import json
from dataclasses import replace

import offpolicy as op
import polars as pl
import pytest
from cli import offpolicy
from improving import EAGER, LOG, POLICIES, SMALL, WALK, by_policies
from offpolicy.policies import Mixture as Mixed


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
    assert [row["value"] for row in rows] == best.candidates["value"].to_list()


def test_the_figure_has_a_bar_from_score_to_value_and_the_line_of_the_behaviour_policy():
    best = by_policies()
    spec = best.plot().to_dict()
    layers = {layer["mark"]["type"]: layer for layer in spec["layer"] if "isValid(datum.value)" not in str(layer)}
    fields = {mark: {name: about.get("field") for name, about in layer["encoding"].items() if name in ("x", "x2", "y")}
              for mark, layer in layers.items()}  # fmt: skip
    assert fields["bar"] == {"x": "value", "x2": "score", "y": "candidate"}
    assert fields["tick"] == {"x": "score", "y": "candidate"}
    assert fields["point"] == {"x": "value", "y": "candidate"}
    assert fields["rule"] == {"x": "value"}
    assert layers["bar"]["encoding"]["y"]["sort"] == list(POLICIES)
    assert layers["bar"]["encoding"]["x"]["title"] == "value by step-is"
    (line,) = spec["datasets"][layers["rule"]["data"]["name"]]
    assert line["value"] == best.behavior.value
    assert f"{len(POLICIES)} candidates by step-is" in spec["title"]["subtitle"][-1]


def test_the_title_says_what_the_conclusion_says():
    sure, doubtful, kept = (by_policies(caution=caution) for caution in (2.0, 1.0, 100.0))
    titles = [result.plot().to_dict()["title"] for result in (sure, doubtful, kept)]
    said = [f"{sure.winner} is taken", f"{doubtful.winner} is taken with care", "the behaviour policy stays"]
    assert [title["text"] for title in titles] == [f"Safe improvement: {words}" for words in said]
    told = "the verdict on its weights is unusable"
    assert [title["subtitle"][0] == told for title in titles] == [False, True, False]
    assert doubtful.conclusion.startswith("take with care")
    assert told in doubtful.conclusion


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


@pytest.fixture
def log_file(tmp_path):
    machine = op.domain("machine")
    machine.simulate(machine.behavior, 150, seed=2).write_parquet(tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


COMMAND = ("--domain", "machine", "--generator", "thresholds", "--estimator", "step-is")


def test_the_command_prints_the_document_of_the_python_api(log_file):
    run = offpolicy("improve", log_file, *COMMAND, "--caution", 2, "--json")
    assert (run.code, run.err) == (0, "")
    best = op.improve([str(log_file)], "machine", generator="thresholds", estimator="step-is", caution=2.0)
    assert run.document == json.loads(json.dumps(best.to_dict()))
    assert run.document["winner"] == best.winner
    assert run.document["number_of_candidates"] == 5


def test_the_command_tells_people_the_winner_first_and_then_the_candidates(log_file):
    best = op.improve(log_file, "machine", generator="thresholds", estimator="step-is", interval="t", confidence=0.9)
    run = offpolicy("improve", log_file, *COMMAND, "--interval", "t", "--confidence", 0.9)
    first, second, third, *rest = run.out.splitlines()
    assert (first, second, third) == (best.conclusion, best.promise, str(best.verdict))
    ranked = best.candidates.sort("rank")["candidate"]
    assert [name for line in rest for name in ranked if name in line] == ranked.to_list()
    assert any(line.split()[:1] == ["behavior"] for line in rest)


def test_the_command_takes_policies_of_the_domain_and_fits_a_model(log_file):
    run = offpolicy(
        *("improve", log_file, "--domain", "machine", "--set", "horizon=30", "--train-fraction", 0.25, "--json"),
        *("--policy", "careful", "--policy", "mix:careful:0.5"),
    )
    machine = op.domain("machine", horizon=30)
    careful = machine.policies["careful"]
    policies = {"careful": careful, "mix:careful:0.5": Mixed(careful, machine.behavior, 0.5)}
    best = op.improve(log_file, machine, generator=policies, train_fraction=0.25)
    assert run.document["candidates"] == best.candidates.to_dicts()
    assert best.candidates["train_fraction"].to_list() == [0.25, 0.25]


def test_the_command_writes_into_a_folder_or_a_file(log_file, tmp_path):
    run = offpolicy("improve", log_file, *COMMAND, "--out", tmp_path / "out", "--json")
    assert run.code == 0
    assert json.loads((tmp_path / "out" / "improvement.json").read_text()) == run.document
    assert (tmp_path / "out" / "improvement.svg").read_text().startswith("<svg")
    run = offpolicy("improve", log_file, *COMMAND, "--out", tmp_path / "best.json")
    assert run.out.splitlines()[-1] == f"written to {tmp_path / 'best.json'}"
    assert json.loads((tmp_path / "best.json").read_text())["number_of_candidates"] == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--domain", "machin"], "did you mean 'machine'?"),
        (["--generator", "threshold"], "did you mean 'thresholds'?"),
        (["--fitter", "tabula"], "did you mean 'tabular'?"),
        (["--estimator", "wis"], "ratios of sums"),
        (["--policy", "carefull"], "did you mean"),
        (["--policy", "careful", "--policy", "careful"], "policy 'careful' is there twice"),
        (["--generator", "mixture", "--policy", "careful"], "give --generator or --policy, not both"),
        (["--caution", "-1"], "caution must be at least 0"),
        (["--caution", "1", "--interval", "t"], "give --caution, the C of V − Cσ, or --interval, not both"),
        (["--confidence", "0.9"], "name it, as in --interval t"),
        (["--out", "best.pdf"], "a result is a folder, or a file"),
        (["--out", "no/such"], "there is no folder 'no'"),
    ],
)
def test_wrong_usage_ends_with_2(arguments, message, log_file):
    given = dict(zip(COMMAND[::2], COMMAND[1::2], strict=True))
    for name in arguments[::2]:
        given.pop(name, None)
    if "--policy" in arguments:
        given.pop("--generator", None)
    rest = [item for pair in given.items() for item in pair]
    run = offpolicy("improve", log_file, *rest, *arguments)
    assert run.code == 2
    assert message in run.err
    assert run.out == ""
