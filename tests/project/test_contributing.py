"""What CONTRIBUTING.md names is there: recipes of the justfile, files and folders."""

import os
import re
import tomllib

import pytest
from places import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
JUSTFILE = (ROOT / "justfile").read_text()
RECIPES = set(re.findall(r"^(\w+)(?: \*\w+)*:(?!=)", JUSTFILE, re.MULTILINE))
QUOTED = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL))
#: What a build makes, so that a new clone does not have it.
MADE = {"dist/"}
PATHS = sorted({text for text in QUOTED if "/" in text and " " not in text} - MADE)


def test_it_fits_a_reader():
    assert len(TEXT.encode()) < 10_000


@pytest.mark.parametrize("recipe", sorted(set(re.findall(r"\bjust (\w+)`|^just (\w+)$", TEXT, re.MULTILINE))))
def test_every_recipe_that_it_names_is_in_the_justfile(recipe):
    assert "".join(recipe) in RECIPES


def test_every_recipe_that_the_justfile_has_is_named():
    assert {recipe for recipe in RECIPES if not recipe.startswith("_")} == set(re.findall(r"`just (\w+)`", TEXT))


@pytest.mark.parametrize("path", PATHS)
def test_every_path_that_it_names_exists(path):
    assert (ROOT / path).exists()


def test_there_are_paths_to_look_at():
    assert len(PATHS) > 30


@pytest.mark.parametrize("path", sorted(set(re.findall(r"(?<![\w.-])((?:\.ci|tools|benches)/[\w./-]+)", JUSTFILE))))
def test_every_script_of_the_justfile_exists(path):
    assert (ROOT / path).is_file()


def test_paths_of_the_quick_selection_exist():
    listed = re.search(r'^slower := "(.*?)"', JUSTFILE, re.MULTILINE | re.DOTALL).group(1).split()
    assert len(listed) > 3
    for path in listed:
        assert (ROOT / path).exists(), path


def test_tools_have_the_same_versions_in_the_groups_and_in_the_extra_of_the_tests():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = [each for group in project["dependency-groups"].values() for each in group if isinstance(each, str)]
    wanted = {name.split(">")[0]: name for name in groups}
    for each in project["project"]["optional-dependencies"]["test"]:
        assert wanted.get(each.split(">")[0], each) == each


@pytest.mark.parametrize("script", ["run", "lint", "wheel", "template"])
def test_scripts_of_ci_can_be_run(script):
    assert os.access(ROOT / ".ci" / script, os.X_OK)
