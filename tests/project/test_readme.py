"""The README's examples run, and print what it says."""

import re
import shlex

import offpolicy as op
import polars as pl
import pytest
from cli import offpolicy
from offpolicy.evaluation.estimators import named, usual
from places import ROOT

README = (ROOT / "README.md").read_text()


def test_the_demo_prints_what_the_readme_says():
    section = README.split("## Start\n")[1]
    printed = re.search(r"```text\n(.*?)```", section, re.DOTALL).group(1)
    shown = "".join(f"{line.rstrip()}\n" for line in offpolicy("demo").out.splitlines())
    assert shown.startswith(printed)


def test_what_check_finds_is_what_the_readme_says():
    section = README.split("## Bad data\n")[1]
    printed = re.search(r"```text\n(.*?)```", section, re.DOTALL).group(1)
    log = op.demo_log().with_columns(behavior_prob=pl.when(pl.col("episode") != 7).then("behavior_prob").otherwise(0.0))
    assert f"{op.check(log, limit=2)}\n" == printed


def test_every_estimator_has_a_row_and_a_file():
    rows = dict(re.findall(r"^\| `([\w-]+)` \|.*\]\((rust/core/src/estimators/\w+\.rs)\) \|$", README, re.MULTILINE))
    assert set(rows) == set(usual())
    assert all((ROOT / file).is_file() for file in rows.values())
    others = named(lambda about: about.only_when_asked)
    assert all((ROOT / "docs" / "estimators" / f"{name}.md").is_file() for name in others)


def test_every_promise_links_to_its_test():
    rows = README.split("## What is guaranteed\n")[1].split("\n## ")[0].splitlines()
    promises = [line for line in rows if line.startswith("| ") and "](" in line]
    assert len(promises) > 10
    for link in re.findall(r"\]\(([^)]+)\)", "\n".join(promises)):
        assert (ROOT / link).is_file(), link


def test_every_link_leads_somewhere():
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", README) if not link.startswith("http")]
    assert len(links) > 30
    for link in links:
        assert (ROOT / link).exists(), link


def test_every_interval_has_a_row():
    table = README.split("### Intervals\n")[1].split("```python")[0]
    assert all(f"`{method}`" in table for method in op.intervals.METHODS)


def test_every_column_has_a_row():
    rows = "\n".join(line.split("|")[1] for line in README.splitlines() if line.startswith("| `"))
    assert all(f"`{name}`" in rows for name in op.Columns.__dataclass_fields__)


def test_the_example_with_gymnasium_runs_and_is_near_the_truth(capsys):
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "from_gymnasium" in block)
    names = {}
    exec(compile(code, "README", "exec"), names)  # our own text, not data
    assert f"```text\n{capsys.readouterr().out}```" in README
    estimate, lake = names["ev"]["step-wis"], names["lake"]
    assert abs(estimate.value - lake.value(lake.behavior)) < 4 * estimate.std_error


def test_simulating_prints_what_the_readme_says(tmp_path, monkeypatch):
    command = re.search(r"^offpolicy (simulate mountain-car --episodes .*)$", README, re.MULTILINE).group(1)
    monkeypatch.chdir(tmp_path)
    run = offpolicy(*shlex.split(command))
    assert run.code == 0
    assert run.out in README


@pytest.mark.parametrize(
    "heading",
    [
        "## Ten lines",
        "### The verdict",
        "### Intervals",
        "### A model of the log",
        "### Cross-fitting",
        "### Which estimator, in your domain",
        "## Theory as code",
    ],
)
def test_a_section_prints_what_it_says(heading, capsys):
    section = README.split(f"\n{heading}\n")[1]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL).group(1)
    exec(compile(code, "README", "exec"), {})  # our own text, not data
    assert f"```text\n{capsys.readouterr().out}```" in section


def test_cross_fitting_from_the_shell_is_that_from_python(tmp_path, monkeypatch):
    command = re.search(r"^offpolicy (cross-fit .*)$", README, re.MULTILINE).group(1)
    monkeypatch.chdir(tmp_path)
    car = op.domain("mountain-car")
    car.simulate(car.behavior, n=2000, seed=1).write_parquet("car.parquet")
    (estimate,) = offpolicy(*shlex.split(command), "--json").document["estimates"]
    assert f"dr         {estimate['value']:.2f} ± {estimate['std_error']:.2f}\n" in README.split("### Cross-fitting")[1]


def test_everything_of_the_theory_is_in_the_readme():
    section = README.split("## Theory as code")[1].split("\n## ")[0]
    assert all(f"`{name}`" in section for name in op.theory.__all__ if name != "Unrolled")


def test_the_safe_improvement_prints_what_the_readme_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    section = README.split("### A better policy")[1]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL).group(1)
    exec(compile(code, "README", "exec"), {})  # our own text, not data
    assert f"```text\n{capsys.readouterr().out}```" in section
    assert sorted(path.name for path in (tmp_path / "improvement").iterdir()) == ["improvement.json", "improvement.svg"]
