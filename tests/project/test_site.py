"""The pages of the documentation name everything that there is, and lead where they say."""

import re
import shlex
from pathlib import Path

import docs_hooks
import offpolicy as op
import pytest
from cli import offpolicy
from offpolicy import hookspecs, protocols, testing
from offpolicy.evaluation.estimators import named
from pages import PAGES, Session, blocks
from places import ROOT

DOCS = ROOT / "docs"
REFERENCE = "\n".join(path.read_text() for path in sorted((DOCS / "reference").glob("*.md")))


def page(name):
    return (DOCS / name).read_text()


def plain(text):
    """A page without its code blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(path):
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", plain(path.read_text())):
        assert "://" in link or (path.parent / link).exists(), link


@pytest.mark.parametrize("name", named())
def test_every_estimator_has_a_page_that_says_all(name):
    text = page(f"estimators/{name}.md")
    assert text.startswith(f"# {name}\n\n")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[:6] == ["Equation", "What it tells", "When to use it", "When not", "Assumptions", "Reference"]
    assert f"](../../rust/core/src/estimators/{name.replace('-', '_')}.rs)" in text


def test_every_page_of_an_estimator_is_of_one_that_exists():
    assert {path.stem for path in (DOCS / "estimators").glob("*.md")} - {"index"} == set(named())


def test_the_table_of_estimators_has_a_row_for_each():
    rows = docs_hooks.estimator_table().splitlines()[2:]
    assert [re.match(r"\| \[`([\w-]+)`\]", row)[1] for row in rows] == list(named())


@pytest.mark.parametrize(
    "word", ["tame, wild", "lane", "leader", "piece", "carried until", "k̂, k-hat", "e-value", "unit"]
)
def test_a_word_of_our_own_is_in_the_glossary(word):
    assert re.search(rf"^(\w.*, )?{word}.*\n:   ", page("glossary.md"), re.MULTILINE)


def test_every_promise_links_to_its_test():
    rows = page("guarantees.md").split("| promise |")[1].split("\n## ")[0].splitlines()
    promises = [line for line in rows if line.startswith("| ") and "](" in line]
    assert len(promises) > 10
    for link in re.findall(r"\]\(([^)]+)\)", "\n".join(promises)):
        assert (DOCS / link).is_file(), link


def test_every_interval_has_a_row():
    table = page("guide/intervals.md").split("## Methods\n")[1].split("\n## ")[0]
    assert all(f"`{method}`" in table for method in op.intervals.METHODS)


def test_every_column_has_a_row():
    rows = "\n".join(line.split("|")[1] for line in page("guide/log.md").splitlines() if line.startswith("| `"))
    assert all(f"`{name}`" in rows for name in op.Columns.__dataclass_fields__)


def test_every_diagnostic_has_a_row():
    rows = "\n".join(line.split("|")[1] for line in page("guide/verdict.md").splitlines() if line.startswith("| `"))
    assert all(f"`{name}`" in rows for name in op.diagnostics.POLICIES if name != "policy")


def test_every_fitter_has_a_row():
    for name in ("tabular", "kernel", "factored", "fqe", "recurrent"):
        made = type(op.fitter(name))
        assert f"\n| `{name}` |" in page("guide/models.md")
        assert f"\n::: {made.__module__}.{made.__name__}\n" in REFERENCE


def test_everything_of_the_theory_is_in_the_guide():
    assert all(f"`{name}`" in page("guide/theory.md") for name in op.theory.__all__ if name != "Unrolled")


@pytest.mark.parametrize("name", [name for name in op.__all__ if name not in ("__version__", "policies", "theory")])
def test_every_public_name_is_in_the_reference(name):
    assert f"\n::: offpolicy.{name}\n" in REFERENCE


@pytest.mark.parametrize(("module", "names"), [("theory", op.theory.__all__), ("testing", testing.__all__)])
def test_every_name_of_a_module_is_in_the_reference(module, names):
    assert all(f"\n::: offpolicy.{module}.{name}\n" in REFERENCE for name in names)


@pytest.mark.parametrize("module", ["policies", "intervals", "diagnostics", hookspecs.__name__, protocols.__name__])
def test_a_module_is_in_the_reference_whole(module):
    assert f"\n::: offpolicy.{module.removeprefix('offpolicy.')}\n" in REFERENCE


def test_the_table_of_hooks_has_a_row_for_each():
    assert "<!-- hooks -->" in page("guide/plugins.md")
    rows = docs_hooks.hook_table().splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == [name for name in vars(hookspecs) if name.startswith("offpolicy_")]


def test_a_name_with_a_star_stands_for_pages_that_are_not_listed():
    nav = [{"A": ["a/index.md", "a/*.md"]}, "b.md", "c*.md", "d*.md"]
    pages = ["a/index.md", "a/x.md", "a/deep/y.md", "b.md", "c-1.md", "c-2.md"]
    found = docs_hooks._expanded(nav, pages, set(docs_hooks._names(nav)))
    assert found == [{"A": ["a/index.md", "a/x.md"]}, "b.md", "c-1.md", "c-2.md"]


@pytest.mark.parametrize(
    ("html", "remote"),
    [
        ('<script src="https://cdn.example/x.js"></script>', 1),
        ('<link rel="stylesheet" href="//fonts.example/css">', 1),
        ('<img src="pictures/forest.svg"><a href="https://example.org">a link</a>', 0),
    ],
)
def test_what_a_page_loads_from_other_hosts_is_found(html, remote):
    assert len(docs_hooks.remote_assets(html)) == remote


def test_the_example_with_gymnasium_is_near_the_truth(tmp_path):
    found = blocks(DOCS / "guide" / "gymnasium.md")
    session = Session(found, tmp_path)
    session.upto(len(found) - 1)
    estimate, lake = session.names["ev"]["step-wis"], session.names["lake"]
    assert abs(estimate.value - lake.value(lake.behavior)) < 4 * estimate.std_error


def test_cross_fitting_from_the_shell_is_that_from_python(tmp_path, monkeypatch):
    text = page("guide/cross-fit.md")
    command = re.search(r"^offpolicy (cross-fit .*)$", text, re.MULTILINE).group(1)
    monkeypatch.chdir(tmp_path)
    car = op.domain("mountain-car")
    car.simulate(car.behavior, n=2000, seed=1).write_parquet("car.parquet")
    (estimate,) = offpolicy(*shlex.split(command), "--json").document["estimates"]
    assert f"dr         {estimate['value']:.2f} ± {estimate['std_error']:.2f}\n" in text


def test_the_safe_improvement_writes_its_document_and_its_figure(tmp_path):
    session = Session(blocks(DOCS / "guide" / "improve.md"), tmp_path)
    session.upto(0)
    assert sorted(path.name for path in Path(tmp_path / "improvement").iterdir()) == [
        "improvement.json",
        "improvement.svg",
    ]
