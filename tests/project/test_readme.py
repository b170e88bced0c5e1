"""The README is short, its commands are the ones that CI runs, and its links lead somewhere, in the sdist too.

Its code blocks run in test_docs.py.
"""

import fnmatch
import re
import tomllib

import pytest
from places import ROOT

README = (ROOT / "README.md").read_text()
LINKS = sorted({link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", README) if not link.startswith("http")})


def test_it_is_short():
    assert len(README.encode()) < 10_000


@pytest.mark.parametrize(
    "command", ["pip install . && offpolicy demo", "pip install '.[test]' ./plugins/offpolicy-* && pytest"]
)
def test_the_two_commands_stand_at_the_beginning_of_a_line(command):
    assert f"\n{command}\n" in README


def test_there_are_links():
    assert len(LINKS) > 20


@pytest.mark.parametrize("link", LINKS)
def test_a_link_leads_somewhere(link):
    assert (ROOT / link).exists()


@pytest.mark.parametrize("link", LINKS)
def test_what_a_link_leads_to_is_in_the_sdist(link):
    included = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["maturin"]["include"]
    patterns = [each["path"].replace("**/", "*") for each in included if "sdist" in each["format"]]
    files = [link] if (ROOT / link).is_file() else [f"{link}/{path.name}" for path in (ROOT / link).iterdir()]
    for file in files:
        assert any(fnmatch.fnmatch(file, pattern) for pattern in patterns), file
