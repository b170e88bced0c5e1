"""The page of the reproduced paper says what the committed results say."""

import json
import re
from pathlib import Path

import pytest
from offpolicy.experiments.reproduction import PAPER

FOLDER = Path(__file__).parents[1] / "docs" / "reproduction"
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


def test_full_size_is_the_papers():
    for file in RESULTS:
        result = json.loads(file.read_text())
        if file.parent.name == result["experiment"]:
            assert result["runs"] == PAPER[result["experiment"]].runs
