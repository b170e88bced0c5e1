"""The page of the reproduced paper says what the committed results say."""

import html
import json
import math
import re

import pytest
from offpolicy.experiments.figures import LOOKS, in_words
from offpolicy.extensions import plugins
from offpolicy_paper.gains_figure import gain_look
from places import ROOT

FOLDER = ROOT / "docs" / "results" / "reproduction"
PAGE = (FOLDER / "README.md").read_text()
RESULTS = sorted(FOLDER.glob("*/result.json"))


@pytest.mark.parametrize("file", RESULTS, ids=lambda file: file.parent.name)
def test_every_verdict_is_on_the_page(file):
    result = json.loads(file.read_text())
    section = next(part for part in PAGE.split("\n## ") if f"({file.parent.name}/figure.svg)" in part)
    shown = dict(re.findall(r"^\| (.+) \| (held|not held|undecided) \|$", section, re.MULTILINE))
    assert shown == {claim["text"].replace("|", r"\|"): claim["verdict"] for claim in result["claims"]}
    assert f"{result['runs']} runs" in section
    for kind in ("svg", "png"):
        assert (file.parent / f"figure.{kind}").is_file()


#: A point of a figure, as a screen reader would tell it.
POINT = re.compile(r'aria-label="([^"]*)" role="graphics-symbol" aria-roledescription="point"')


@pytest.mark.parametrize("file", RESULTS, ids=lambda file: file.parent.name)
def test_the_figure_shows_the_numbers(file):
    numbers = json.loads(file.read_text())["numbers"]
    svg = (file.parent / "figure.svg").read_text()
    told = [dict(part.split(": ", 1) for part in label.split("; ")) for label in POINT.findall(svg)]
    shown = sorted((float(x), name, float(y.replace("−", "-"))) for x, y, name, *_ in map(dict.values, told))
    expected = sorted(map(point, numbers))
    assert [place[:2] for place in shown] == [place[:2] for place in expected]
    assert [y for *_, y in shown] == pytest.approx([y for *_, y in expected], rel=1e-9, abs=1e-12)


def point(row):
    """Place, series and height of a row of numbers."""
    x = row["size"] if "size" in row else row["alpha"]
    height = row["gain"] if "gain" in row else math.log10(row["relative_rmse"])
    look = gain_look if "gain" in row else LOOKS.__getitem__
    return float(x), look(row["estimator"])[0], height


@pytest.mark.parametrize("file", RESULTS, ids=lambda file: file.parent.name)
def test_the_figure_says_in_which_reading_of_the_domain(file):
    svg = html.unescape(file.with_name("figure.svg").read_text())
    said = json.loads(file.read_text())["settings"]["domain"]
    assert in_words(said) in svg
    assert said not in svg


#: How far above its panel, or the whole figure, a title is.
TITLE = re.compile(r'role-title"><g transform="translate\([^,]*,([^)]*)\)')


@pytest.mark.parametrize("file", RESULTS, ids=lambda file: file.parent.name)
def test_the_titles_of_panels_are_level(file):
    *panels, _ = TITLE.findall(file.with_name("figure.svg").read_text())
    assert len(set(panels)) <= 1


def test_full_size_is_the_papers():
    for file in RESULTS:
        result = json.loads(file.read_text())
        if file.parent.name == result["experiment"]:
            assert result["runs"] == plugins.study(result["experiment"]).runs
