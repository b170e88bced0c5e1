"""The result of a safe improvement, as a sentence, a document, a figure and a command."""

import json
from dataclasses import replace
from statistics import NormalDist, median

import offpolicy as op
import polars as pl
import pytest
from cli import offpolicy
from improving import EAGER, LOG, POLICIES, SMALL, WALK, by_policies, eligible
from offpolicy.drivers.improvement import MEASURED
from offpolicy.policies import Mixture as Mixed
from places import ROOT


def test_it_is_saved_as_a_document_and_a_figure(tmp_path):
    best = op.improve(LOG, WALK, generator=SMALL)
    assert best.save(tmp_path / "out") == [tmp_path / "out" / name for name in ("improvement.json", "improvement.svg")]
    document = json.loads((tmp_path / "out" / "improvement.json").read_text())
    assert document == json.loads(json.dumps(best.to_dict()))
    figure = (tmp_path / "out" / "improvement.svg").read_text()
    assert all(name in figure for name in best.candidates["candidate"])
    assert "behaviour policy" in figure
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["improvement.json", "improvement.svg", "out"]


@pytest.mark.parametrize("against", ["difference", "value"])
def test_the_document_says_which_rule_decided(against):
    best = by_policies(against=against, require="reliable")
    document = best.to_dict()
    assert (document["against"], document["require"]) == (best.against, best.require) == (against, "reliable")
    assert (document["settings"]["against"], document["settings"]["require"]) == (against, "reliable")
    row = document["candidates"][0]
    assert row["score"] == (
        row["gain"] - row["gain_error"] if against == "difference" else row["value"] - row["std_error"]
    )
    assert document["bound"]["name"] == ("gain - 1σ" if against == "difference" else "V - 1σ")


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


@pytest.mark.parametrize(("against", "middle"), [("difference", "gain"), ("value", "value")])
def test_the_figure_has_a_bar_from_the_score_and_the_line_of_the_behaviour_policy(against, middle):
    best = by_policies(against=against)
    spec = best.plot().to_dict()
    layers = {layer["mark"]["type"]: layer for layer in spec["layer"] if "!isValid" not in str(layer)}
    fields = {mark: {name: about.get("field") for name, about in layer["encoding"].items() if name in ("x", "x2", "y")}
              for mark, layer in layers.items()}  # fmt: skip
    assert fields["bar"] == {"x": middle, "x2": "score", "y": "candidate"}
    assert fields["tick"] == {"x": "score", "y": "candidate"}
    assert fields["point"] == {"x": middle, "y": "candidate"}
    assert fields["rule"] == {"x": middle}
    assert layers["bar"]["encoding"]["y"]["sort"] == list(POLICIES)
    title = {"gain": "gain over the behaviour policy by step-is", "value": "value by step-is"}[middle]
    assert layers["bar"]["encoding"]["x"]["title"] == title
    (line,) = spec["datasets"][layers["rule"]["data"]["name"]]
    assert line[middle] == best.threshold == (0.0 if against == "difference" else best.behavior.value)
    assert line["text"] == f"behaviour policy, value {best.behavior.value:.4g}"
    assert f"{len(POLICIES)} candidates by step-is" in spec["title"]["subtitle"][0]


def test_the_figure_pales_those_whose_verdict_bars_them():
    best = by_policies()
    spec = best.plot().to_dict()
    rows = [row for rows in spec["datasets"].values() for row in rows if "candidate" in row]
    assert {row["candidate"] for row in rows if not row["barred"]} == set(eligible(best))
    assert 0 < sum(row["barred"] for row in rows) < len(rows)
    assert "pale bars have a verdict worse than fragile" in spec["title"]["subtitle"]


def test_the_title_says_what_the_conclusion_says():
    sure, kept = (by_policies(caution=caution) for caution in (1.0, 100.0))
    titles = [result.plot().to_dict()["title"]["text"] for result in (sure, kept)]
    assert titles == [f"Safe improvement: {sure.winner} is taken", "Safe improvement: the behaviour policy stays"]
    assert (sure.conclusion.split()[0], kept.conclusion.split()[0]) == ("take", "keep")


@pytest.mark.parametrize(("against", "middle"), [("difference", "gain"), ("value", "value")])
def test_a_wild_candidate_does_not_hide_the_others(against, middle):
    best = op.improve(LOG, WALK, generator=SMALL, against=against)
    low, high, cut = axis(best)
    assert not cut
    assert low < best.candidates["score"].min() < best.candidates[middle].max() < high
    wild = best.candidates.with_columns(score=pl.when(pl.col("rank") == 6).then(-1e6).otherwise("score"))
    low, high, cut = axis(replace(best, candidates=wild))
    assert cut
    assert -1e3 < low < best.threshold < best.highest["score"] < high


def axis(result):
    """The ends of the axis of the figure, and whether it says that bars are cut."""
    spec = result.plot().to_dict()
    (low, high), *others = [layer["encoding"]["x"]["scale"]["domain"] for layer in spec["layer"]]
    assert all(ends == [low, high] for ends in others)
    return low, high, "bars that reach beyond the axis are cut" in spec["title"]["subtitle"]


def test_it_reads_as_a_recommendation():
    best = by_policies(caution=2.0)
    first, second, *_ = str(best).splitlines()
    assert first == best.conclusion == f"take 'half' with gain - 2σ = {score(best, 'half')}, which is above 0"
    assert second == best.promise
    paper = by_policies(caution=1.0, against="value", generator={"half": POLICIES["half"]})
    above = f"which is above {paper.behavior.value:.4g}, the value of the behaviour policy"
    assert paper.conclusion == f"take 'half' with V - 1σ = {score(paper, 'half')}, {above}"
    kept = by_policies(caution=100.0)
    highest = f"the highest is {kept.highest['candidate']!r} with gain - 100σ = {kept.highest['score']:.4g}"
    assert kept.conclusion == f"keep the behaviour policy: no bound of a gain is above 0; {highest}"


def score(best, name):
    return f"{best.candidates.filter(pl.col('candidate') == name)['score'].item():.4g}"


def test_a_promise_says_more_than_the_limit_only_where_it_holds_for_finite_samples():
    one = {"half": POLICIES["half"]}
    measured = (
        "measured with 3σ (docs/results/improvement), all held at once in 0.74 of logs at worst and 0.99 in the median"
    )
    asymptotic, certain = by_policies(caution=3.0), by_policies(interval="betting", confidence=0.99)
    assert asymptotic.corrected_confidence == pytest.approx(1 - 4 * NormalDist().cdf(-3.0))
    limit = "a bound alone holds with confidence 0.9987 in the limit of many episodes (asymptotic)"
    assert asymptotic.promise == f"{limit}, those of all 4 candidates at once with 0.9946; {measured}"
    assert by_policies(generator=one, caution=3.0).promise == f"{limit}; {measured}"
    finite = "a bound alone holds with confidence 0.99 (finite-sample)"
    assert certain.promise == f"{finite}, those of all 4 candidates at once with 0.96 or more"
    heuristic = by_policies(interval="bootstrap", confidence=0.99).promise
    assert "in the limit of many episodes (heuristic)" in heuristic
    assert "or more" not in asymptotic.promise + heuristic
    hopeless = by_policies(caution=0.5).promise
    assert "those of all 4 candidates at once without any guarantee: that takes caution=2.24 for 0.95" in hopeless


@pytest.mark.parametrize("against", MEASURED)
def test_the_promise_tells_what_was_measured(against):
    document = json.loads((ROOT / "docs" / "results" / "improvement" / "promise.json").read_text())
    rows = [row for row in document["rows"] if (row["rule"], row["bound"]) == (against, "C=3")]
    held = [row["held"] for row in rows]
    assert MEASURED[against] == (min(held), median(held), max(row["worse_of_worse"] for row in rows))
    assert document["logs"] >= 200
    assert len(document["problems"]) >= 4
    assert len({row["n"] for row in rows}) >= 3


def test_bounds_for_finite_samples_held_as_often_as_they_promise():
    document = json.loads((ROOT / "docs" / "results" / "improvement" / "promise.json").read_text())
    assert all(row["held"] >= row["promised"] for row in document["rows"] if row["bound"] == "betting")


@pytest.mark.parametrize("bound", [{"caution": 3.0}, {"interval": "betting"}])
def test_the_papers_rule_says_what_it_does_not_cover(bound):
    best = by_policies(against="value", **bound)
    missing = "no bound covers the error of the behaviour policy's own value"
    own = f"{best.behavior.value:.4g} ± {best.behavior.std_error:.2g}"
    measured = "a worse policy was recommended in 0.435 of measured logs at worst"
    assert best.promise.endswith(f"; {missing}, {own}, which they are compared with: {measured}")
    assert missing not in by_policies(**bound).promise


@pytest.fixture
def log_file(tmp_path):
    machine = op.domain("machine")
    machine.simulate(machine.behavior, 150, seed=2).write_parquet(tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


COMMAND = ("--domain", "machine", "--generator", "thresholds", "--estimator", "step-is")


def test_the_command_prints_the_document_of_the_python_api(log_file):
    rule = ("--caution", 2, "--against", "value", "--require", "reliable")
    run = offpolicy("improve", log_file, *COMMAND, *rule, "--json")
    assert (run.code, run.err) == (0, "")
    options = {"estimator": "step-is", "caution": 2.0, "against": "value", "require": "reliable"}
    best = op.improve([str(log_file)], "machine", generator="thresholds", **options)
    assert run.document == json.loads(json.dumps(best.to_dict()))
    assert run.document["winner"] == best.winner
    assert run.document["number_of_candidates"] == 5


def test_the_command_tells_people_the_winner_first_and_then_the_candidates(log_file):
    best = op.improve(log_file, "machine", generator="thresholds", estimator="step-is", interval="t", confidence=0.6)
    run = offpolicy("improve", log_file, *COMMAND, "--interval", "t", "--confidence", 0.6)
    first, second, third, *rest = run.out.splitlines()
    assert (first, second, third) == (best.conclusion, best.promise, str(best.verdict))
    ranked = best.candidates.sort("rank")["candidate"]
    assert [name for line in rest for name in ranked if name in line] == ranked.to_list()
    assert any(line.split()[:1] == ["behavior"] for line in rest)


def test_the_command_takes_policies_of_the_domain_and_fits_a_model(log_file):
    run = offpolicy(
        *("improve", log_file, "--domain", "machine", "--set", "horizon=30", "--train-fraction", 0.25, "--json"),
        *("--policy", "careful", "--policy", "mix:careful:0.5", "--truncation", "as-terminal"),
    )
    machine = op.domain("machine", horizon=30)
    careful = machine.policies["careful"]
    policies = {"careful": careful, "mix:careful:0.5": Mixed(careful, machine.behavior, 0.5)}
    best = op.improve(log_file, machine, generator=policies, train_fraction=0.25, truncation="as-terminal")
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
        (["--against", "values"], "'values' is not one of 'difference', 'value'"),
        (["--require", "unusable"], "'unusable' is not one of 'fragile', 'reliable'"),
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
