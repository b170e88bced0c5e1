"""`offpolicy evaluate`, `check` and `demo`: tables for people, one document for programs."""

import json
import os
import pty
import re
import subprocess

import offpolicy as op
import polars as pl
import pytest
from cli import COMMAND, offpolicy, process
from logs import file_pieces, random_log
from offpolicy.cli import main

ROUNDED = re.compile(r"-?\d+\.\d+")


@pytest.fixture
def log():
    return random_log(31, episodes=40, horizon=4)


def lines_of(out, estimator):
    """The rows of the table: policy, estimator, number."""
    return [line for line in out.splitlines() if re.match(rf"\S+ +{estimator} +-?\d", line)]


def test_evaluate_shows_the_verdict_and_then_a_row_an_estimate(log, log_file):
    run = offpolicy("evaluate", log_file, "--discount", 0.9, "--baseline", 0.1)
    ev = op.evaluate(log, discount=0.9, baseline=0.1)
    assert run.code == 0
    assert run.err == ""
    assert run.out.splitlines()[0] == str(ev.verdict)
    assert "40 episodes" in run.out
    for estimate in ev.estimates:
        (line,) = lines_of(run.out, estimate.estimator)
        ends = [] if estimate.estimator == "magic" else [estimate.low, estimate.high]  # it has no interval
        shown = [estimate.value, estimate.std_error, *ends]
        assert [float(number) for number in ROUNDED.findall(line)][: len(shown)] == pytest.approx(shown, abs=0.005)
        assert f"{estimate.ess:,.1f}" in line


def test_json_is_the_result_of_the_python_api_with_its_provenance(log, log_file):
    run = offpolicy("evaluate", log_file, "--json", "--discount", 0.9, "--horizon", 5, "--confidence", 0.9)
    assert (run.code, run.err) == (0, "")
    expected = op.evaluate(log_file, discount=0.9, horizon=5, confidence=0.9).to_dict()
    assert run.document == json.loads(json.dumps(expected))
    (source,) = run.document["sources"]
    assert source == {"source": str(log_file), "bytes": log_file.stat().st_size, "rows": log.height}
    assert run.document["version"] == op.__version__
    assert run.document["settings"]["discount"] == 0.9


def test_several_paths_globs_and_folders_form_one_log(log, log_file, tmp_path):
    paths = file_pieces(log, tmp_path / "parts", [13, 30])
    whole = offpolicy("evaluate", log_file, "--json").document["estimates"]
    for given in (paths, paths[::-1], [tmp_path / "parts"], [tmp_path / "parts" / "part-*.parquet"]):
        run = offpolicy("evaluate", *given, "--json")
        assert run.document["estimates"] == whole


def test_estimators_are_those_asked_for(log_file):
    run = offpolicy("evaluate", log_file, "--json", "--estimator", "dr", "--estimator", "step-is")
    assert [row["estimator"] for row in run.document["estimates"]] == ["dr", "step-is"]


def test_columns_are_renamed(log, tmp_path):
    path = tmp_path / "log.parquet"
    log.rename({"reward": "gain", "episode": "user=id"}).write_parquet(path)
    columns = ("--column", "reward=gain", "--column", "episode=user=id")
    run = offpolicy("evaluate", path, "--json", *columns)
    assert run.document["estimates"] == json.loads(json.dumps(op.evaluate(log).to_dict()["estimates"]))
    assert offpolicy("check", path, *columns).code == 0


def test_policies_have_their_columns_models_and_mixtures(log, tmp_path):
    path = tmp_path / "log.parquet"
    log.with_columns(pa="target_prob", wa=pl.lit(1.0), qa="q_hat", va="v_hat").write_parquet(path)
    policies = {
        "new": op.PolicyColumns(target_prob="pa", q_hat="qa", v_hat="va"),
        "flat": op.PolicyColumns(ratio="wa"),
        "half": op.PolicyColumns(mixture_of="new", alpha=0.5),
    }
    given = ("new=pa,q_hat=qa,v_hat=va", "flat=ratio=wa", "half=mix:new:0.5")
    run = offpolicy("evaluate", path, "--json", *(word for text in given for word in ("--policy", text)))
    expected = op.evaluate(path, policies=policies).to_dict()
    assert run.document == json.loads(json.dumps(expected))
    assert {row["policy"] for row in run.document["estimates"]} == {"behavior", *policies}


def test_bounds_give_finite_sample_intervals(tmp_path):
    path = tmp_path / "log.parquet"
    op.demo_log().write_parquet(path)
    bounds = ("--reward-range", "0,1", "--ratio-bound", 1.4, "--q-range", "0,10")
    run = offpolicy("evaluate", path, "--json", "--interval", "hoeffding", *bounds, "--baseline", 0.3, "--horizon", 10)
    kinds = {row["estimator"]: row for row in run.document["estimates"]}
    assert kinds["step-is"]["interval"]["kind"] == "finite-sample"
    for estimator in ("mc", "is", "step-is", "dr", "dr-bsl"):
        assert kinds[estimator]["low"] < kinds[estimator]["high"]
    for estimator in ("wis", "reg", "dr-v2"):
        assert kinds[estimator]["low"] is None
    shown = offpolicy("evaluate", path, "--interval", "hoeffding").out
    assert "--reward-range" in shown


def test_one_pass_is_asked_for_only_when_given(log_file, monkeypatch, capsys):
    asked = []
    real = op.evaluate

    def evaluate(log, *, passes=None, **settings):
        asked.append(passes)
        return real(log, **settings)

    monkeypatch.setattr(op, "evaluate", evaluate)
    assert main(["evaluate", str(log_file)]) == main(["evaluate", str(log_file), "--one-pass"]) == 0
    assert asked == [None, 1]


def test_out_writes_the_document_and_nothing_beside_it(log_file, tmp_path):
    folder = tmp_path / "results"
    folder.mkdir()
    out = folder / "result.json"
    out.write_text("the old one")
    run = offpolicy("evaluate", log_file, "--out", out)
    assert run.code == 0
    assert f"written to {out}" in run.out
    assert json.loads(out.read_text()) == offpolicy("evaluate", log_file, "--json").document
    assert [path.name for path in folder.iterdir()] == ["result.json"]
    run = offpolicy("evaluate", log_file, "--out", out, "--json")
    assert json.loads(out.read_text()) == run.document


def test_out_keeps_the_old_file_when_the_rename_fails(log_file, tmp_path, monkeypatch, capsys):
    out = tmp_path / "result.json"
    out.write_text("the old one")
    before = sorted(tmp_path.iterdir())

    def replace(self, target):
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr("pathlib.Path.replace", replace)
    assert main(["evaluate", str(log_file), "--out", str(out)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert "no space left" in captured.err
    assert out.read_text() == "the old one"
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["[red]new[/red]", "<script>alert(1)</script>", "[/]", ":boom:", "a\x1b[31mb"])
def test_names_stay_as_they_are(log_file, name):
    run = offpolicy("evaluate", log_file, "--policy", f"{name}=target_prob")
    shown = name.replace("\x1b", "\\x1b")
    assert run.code == 0
    assert "\x1b" not in run.out
    (line,) = lines_of(run.out, "step-is")
    assert line.startswith(f"{shown} ")
    document = offpolicy("evaluate", log_file, "--json", "--policy", f"{name}=target_prob").document
    assert document["verdict"]["policy"] == name


def at_a_terminal(*arguments, columns=120):
    """Runs a command whose output and errors are one terminal."""
    master, slave = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": str(columns)}
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)], stdin=slave, stdout=slave, stderr=slave, env=environment
    )
    os.close(slave)
    parts = []
    try:
        while part := os.read(master, 65536):
            parts.append(part)
    except OSError:  # Linux: the other end is closed
        pass
    finally:
        os.close(master)
    return process.wait(), b"".join(parts).decode()


def test_a_bar_of_rows_is_for_terminals(log, log_file):
    code, shown = at_a_terminal("evaluate", log_file)
    assert code == 0
    assert "reading" in shown
    assert f" of {log.height:,} rows" in shown
    assert f"{2 * log.height:,}" not in shown
    assert "\x1b[" in shown
    code, shown = at_a_terminal("evaluate", log_file, "--json")
    assert code == 0
    json.loads(shown)


def test_a_pipe_gets_no_bar_no_colour_and_no_folded_lines(log_file):
    run = process("evaluate", log_file)
    assert (run.code, run.err) == (0, "")
    assert "\x1b" not in run.out
    assert "reading" not in run.out
    assert len(run.out.splitlines()[0]) > 80


def test_a_narrow_terminal_shows_whole_numbers(log, log_file):
    _, shown = at_a_terminal("evaluate", log_file, "--estimator", "dr", columns=30)
    dr = op.evaluate(log, estimators=["dr"])["dr"]
    assert f"{dr.low:.1f} … {dr.high:.1f}" in shown


def test_a_reader_that_goes_away_is_no_accident(log_file):
    read, write = os.pipe()
    os.close(read)
    process = subprocess.run(
        [*COMMAND, "evaluate", log_file, "--json"], stdout=write, stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    assert (process.returncode, process.stderr) == (1, "")


def test_repairs_are_shown(log, tmp_path):
    path = tmp_path / "log.parquet"
    pl.concat([log, log[:3]]).sample(fraction=1.0, shuffle=True, seed=1).write_parquet(path)
    run = offpolicy("evaluate", path, "--order", "any", "--dedupe", "identical")
    assert run.code == 0
    assert "sorted" in run.out
    assert "3 repeated rows were dropped" in run.out


@pytest.mark.parametrize(
    ("kind", "words"), [("bootstrap", "taken from the model"), ("reduce-horizon", "first 2 steps")]
)
def test_truncated_episodes_are_mended_on_request(log, tmp_path, kind, words):
    path, last = tmp_path / "log.parquet", pl.col("step") == pl.col("step").max().over("episode")
    log.with_columns(truncated=last & (pl.len().over("episode") == 2)).write_parquet(path)
    assert kind in offpolicy("evaluate", path).err
    run = offpolicy("evaluate", path, "--truncation", kind, "--estimator", "dr")
    assert (run.code, run.err) == (0, "")
    assert words in run.out


@pytest.mark.parametrize("name", ["report.html", "table.csv"])
def test_a_result_is_json_and_not_named_otherwise(log_file, tmp_path, name):
    run = offpolicy("evaluate", log_file, "--out", tmp_path / name)
    assert run.code == 2
    assert "name a file .json" in run.err
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize(("name", "reader"), [("log.csv", "pl.scan_csv"), ("log.jsonl", "pl.scan_ndjson")])
def test_other_files_are_refused_with_what_reads_them(log, tmp_path, name, reader):
    (log.write_csv if name.endswith("csv") else log.write_ndjson)(tmp_path / name)
    run = offpolicy("evaluate", tmp_path / name)
    assert run.code == 1
    assert name in run.err
    assert reader in run.err


def test_check_says_when_nothing_is_wrong(log, log_file):
    run = offpolicy("check", log_file)
    assert (run.code, run.err) == (0, "")
    assert run.out.strip() == f"no problem found in {log.height} rows of 40 episodes"
    document = offpolicy("check", log_file, "--json").document
    assert (document["ok"], document["found"], document["problems"]) == (True, 0, [])


def test_check_lists_every_problem_with_its_place(log, tmp_path):
    bad = log.with_columns(
        reward=pl.when(pl.col("step") == 1).then(float("nan")).otherwise("reward"),
        behavior_prob=pl.when(pl.col("step") == 0).then(0.0).otherwise("behavior_prob"),
    )
    path = tmp_path / "[bold]bad.parquet"
    bad.write_parquet(path)
    report = op.check([path])
    run = offpolicy("check", path)
    assert run.code == 1
    assert run.out.splitlines()[0] == f"{report.found} problems found"
    for problem in report.problems:
        place = rf"{re.escape(str(path))} +{problem.row} +{problem.episode} +{problem.step} +{problem.column} "
        assert re.search(place, run.out)
    run = offpolicy("check", path, "--json")
    assert run.code == 1
    assert run.document["found"] == report.found
    keys = ("kind", "file", "episode", "step", "column")
    listed = [tuple(problem[key] for key in keys) for problem in run.document["problems"]]
    assert listed == [tuple(getattr(problem, key) for key in keys) for problem in report.problems]


def test_check_heeds_limit_horizon_density_and_policies(log, tmp_path):
    path = tmp_path / "log.parquet"
    log.with_columns(pa=pl.lit(2.0)).write_parquet(path)
    run = offpolicy("check", path, "--policy", "a=pa", "--limit", 2)
    assert run.code == 1
    assert f"{log.height - 2} more" in run.out
    assert offpolicy("check", path, "--policy", "a=pa", "--density").code == 0
    assert offpolicy("check", path, "--horizon", 3).code == 1


def test_the_demo_shows_every_estimator_beside_the_truth():
    run = offpolicy("demo")
    assert (run.code, run.err) == (0, "")
    for estimator in ("mc", "is", "step-is", "wis", "step-wis", "reg", "dr", "dr-bsl", "dr-v2", "wdr", "magic"):
        assert len(lines_of(run.out, estimator)) == 1
    assert f"{op.demo_value():.4f}" in run.out
    assert run.out.splitlines()[-1].strip().startswith("offpolicy evaluate ")
    document = offpolicy("demo", "--json").document
    assert document["truth"] == op.demo_value()
    (dr,) = (row for row in document["estimates"] if row["estimator"] == "dr")
    assert abs(dr["value"] - document["truth"]) < 3 * dr["std_error"]


def test_what_the_demo_says_to_do_works(tmp_path):
    op.demo_log().write_parquet(tmp_path / "log.parquet")
    words = offpolicy("demo").out.splitlines()[-1].split()
    assert words[0] == "offpolicy"
    assert process(*words[1:], cwd=tmp_path).code == 0


def test_version_and_help():
    assert offpolicy("--version").out == f"offpolicy {op.__version__}\n"
    for command in ((), ("evaluate",), ("check",), ("demo",)):
        run = offpolicy(*command, "--help")
        assert run.code == 0
        assert "Usage: offpolicy" in run.out


def test_out_writes_through_a_link(log_file, tmp_path):
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    link.symlink_to(real)
    assert offpolicy("evaluate", log_file, "--estimator", "mc", "--out", link).code == 0
    assert link.is_symlink()
    assert json.loads(real.read_text())["estimates"]


def test_out_refuses_what_is_not_a_file(log_file):
    run = offpolicy("evaluate", log_file, "--out", "/dev/null")
    assert run.code == 2
    assert "'/dev/null' is not a file" in run.err


def test_a_bound_that_is_missing_withholds_one_interval_and_keeps_the_others(log_file):
    asked = ("--estimator", "step-is", "--estimator", "dr", "--interval", "hoeffding")
    asked += ("--horizon", "9")
    run = offpolicy("evaluate", log_file, *asked, "--reward-range=-9,9", "--ratio-bound", "9")
    assert run.code == 0
    assert "dr: give --q-range" in run.out
    rows = offpolicy("evaluate", log_file, *asked, "--reward-range=-9,9", "--ratio-bound", "9", "--json").document
    assert [row["low"] is None for row in rows["estimates"]] == [False, True]
