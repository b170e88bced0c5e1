"""The rooms of the house: what stands at the top, how much stands directly in a room, and where tests stand."""

import ast
import re

import pytest
from places import ROOT

PACKAGE, UNIT = ROOT / "python" / "offpolicy", ROOT / "tests" / "unit"
#: All that stands at the top beside files that begin with a dot and what .gitignore names.
TOP = {
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"),
    *("Cargo.toml", "Cargo.lock", "pyproject.toml", "justfile", "mkdocs.yml"),
    *("python", "rust", "plugins", "tests", "benches", "docs", "tools"),
}
#: A room has few doors: what is not public stands inside.
MOST_MODULES, MOST_CORE_FILES = 14, 4
ROOMS = sorted(path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py")))
TESTS = sorted(UNIT.rglob("*.py"))


def called(folder):
    """Return what a room is called in the tests: `_util` is `util` there."""
    return folder.lstrip("_")


def test_nothing_else_stands_at_the_top():
    ignored = set(re.findall(r"^/?([\w.-]+)/?$", (ROOT / ".gitignore").read_text(), re.MULTILINE))
    found = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    assert found - ignored - TOP == set()


def test_few_modules_stand_directly_in_the_package():
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_MODULES


def test_few_files_stand_directly_in_the_core():
    assert len(list((ROOT / "rust" / "core" / "src").glob("*.rs"))) <= MOST_CORE_FILES


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_it_is_for_and_has_its_tests(room):
    assert (PACKAGE / room / "__init__.py").read_text().startswith(('"""', 'r"""'))
    assert any((UNIT / called(room)).glob("test_*.py"))


def test_tests_stand_in_rooms_of_the_package():
    assert {path.name for path in UNIT.iterdir() if path.is_dir() and any(path.glob("*.py"))} == set(map(called, ROOMS))


def rooms_of(module):
    """Return the rooms that have a module of this name; what stands directly in the package has the room "unit"."""
    found = [path.relative_to(PACKAGE).parts for path in PACKAGE.rglob(f"{module}.py")]
    return {called(parts[0]) if len(parts) > 1 else UNIT.name for parts in found}


@pytest.mark.parametrize("test", TESTS, ids=lambda path: path.stem)
def test_a_test_named_for_a_module_stands_in_its_room(test):
    rooms = rooms_of(test.stem.removeprefix("test_"))
    assert not rooms or test.relative_to(UNIT.parent).parts[:-1][-1] in rooms


def test_helpers_stand_in_support_alone():
    support = ROOT / "tests" / "support"
    others = [path for path in (ROOT / "tests").rglob("*.py") if support not in path.parents]
    others += (ROOT / "plugins").glob("*/tests/**/*.py")
    assert {path.name for path in others if not path.name.startswith("test_")} <= {"conftest.py"}
    assert [path.name for path in support.rglob("*.py") if path.name.startswith("test_")] == []


def is_script(path):
    """Return True for what is run by hand."""
    tests = [node.test for node in ast.parse(path.read_text()).body if isinstance(node, ast.If)]
    return any(ast.unparse(test) == "__name__ == '__main__'" for test in tests)


def test_scripts_stand_in_tools():
    """Beside those of the benchmarks; the package has a command."""
    found = [path for folder in ("python", "plugins", "tests") for path in (ROOT / folder).rglob("*.py")]
    assert len(found) > 300
    assert [path for path in found if is_script(path)] == []
    assert any(map(is_script, (ROOT / "tools").glob("*.py")))
    assert [path for folder in ("docs", "rust") for path in (ROOT / folder).rglob("*.py")] == []
