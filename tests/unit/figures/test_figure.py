"""Figures are asked for by kind, and saved as what the file is called."""

import subprocess
import sys
from html.parser import HTMLParser

import offpolicy as op
import pytest
from offpolicy.figures import KINDS


@pytest.fixture(scope="module")
def evaluation():
    return op.evaluate(op.demo_log(episodes=100), discount=0.9, estimators=["mc", "dr"])


@pytest.mark.parametrize("kind", ["pie", "", None, 3, ["forest"]])
def test_an_unknown_kind_is_refused_with_those_there_are(evaluation, kind):
    with pytest.raises(op.UsageError, match=f"kind must be one of {', '.join(map(repr, KINDS))}, not "):
        evaluation.figure(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_drawn(evaluation, kind):
    figure = evaluation.figure(kind)
    assert figure.kind == kind
    assert figure._repr_svg_().startswith("<svg")


@pytest.mark.parametrize(("suffix", "begins"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<!DOCTYPE html>")])
def test_it_is_saved_as_what_the_file_is_called(evaluation, suffix, begins, tmp_path):
    evaluation.figure("forest").save(tmp_path / f"forest.{suffix}")
    assert (tmp_path / f"forest.{suffix}").read_bytes().lstrip().startswith(begins)


class Loads(HTMLParser):
    """Addresses in the tags of a page, and not in the text of its scripts."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.scripts = 0
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == "script"
        self.found += [value for name, value in attrs if name in ("src", "href")]


def test_a_page_loads_nothing(evaluation, tmp_path):
    evaluation.figure("forest").save(tmp_path / "forest.html")
    page = Loads((tmp_path / "forest.html").read_text())
    assert page.found == []
    assert page.scripts > 0


def test_other_files_are_refused(evaluation, tmp_path):
    with pytest.raises(op.UsageError, match=r"a picture is a file \.svg"):
        evaluation.figure("forest").save(tmp_path / "forest.bmp")
    assert list(tmp_path.iterdir()) == []


def test_a_notebook_shows_it_without_a_script(evaluation):
    shown = evaluation.figure("forest")._repr_svg_()
    assert "<script" not in shown
    assert "Verdict" in shown


def test_the_package_is_imported_without_altair():
    code = "import sys, offpolicy; assert not {'altair', 'vl_convert'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
