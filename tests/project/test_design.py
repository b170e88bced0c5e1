"""The walk in docs/design.md names functions that exist, and is short enough to be followed."""

import re

import pytest
from places import ROOT

PAGE = (ROOT / "docs" / "design.md").read_text()
HOPS = re.findall(r"^(\d+)\. `(\w+)` in `([\w/.]+)` \w", PAGE, re.MULTILINE)
PLAN = re.findall(r"^- `(\w+)` in `([\w/.]+)` \w", PAGE, re.MULTILINE)


def test_a_row_goes_through_fewer_than_35_functions():
    assert [int(number) for number, _, _ in HOPS] == list(range(1, len(HOPS) + 1))
    assert 20 < len(HOPS) < 35
    assert len(PLAN) == 6


@pytest.mark.parametrize(("name", "file"), [*((name, file) for _, name, file in HOPS), *PLAN])
def test_every_function_of_the_walk_is_in_its_file(name, file):
    keyword = "def" if file.endswith(".py") else "fn"
    assert re.search(rf"\b{keyword} {name}\b", (ROOT / file).read_text()), f"{name} is not in {file}"
