"""Nothing imports what imports it, also where the import is hidden in a function or a text, or is for types only."""

import ast
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate
from typing import NamedTuple

import pytest
from places import ROOT

PACKAGE = "offpolicy"
SOURCE = ROOT / "python"
#: Compiled, and without imports of its own.
CORE = f"{PACKAGE}._core"
REQUIREMENTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
#: What the extras bring, by the names they are imported by; an installation may lack each of them.
OPTIONAL = {"sklearn", "jax", "gymnasium", "altair", "vl_convert"}
#: Always there, but a seventh of the time that the command line takes to start: imported where something is shown.
SLOW = {"rich"}


#: The one import by a text that closes a cycle: the registry of plugins loads the built-in one when it is first asked,
#: as it loads any other package. A built-in generator may be given the name of a fitter, which it finds in the registry
#: as a generator of any other package would.
REGISTRY = (f"{PACKAGE}.extensions.plugins", f"{PACKAGE}.extensions.builtin", "text")


class Import(NamedTuple):
    """`where` is "module", "function", "typing", or "text" for a module that is named in a text and loaded by it."""

    importer: str
    imported: str
    where: str


def modules():
    """Return the source of every module by its name."""
    found = {}
    for path in sorted((SOURCE / PACKAGE).rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text()
    return found


def imports(sources):
    """Return every import in these modules; of ours, the module that is meant, also by `from package import module`."""
    return [found for name, text in sources.items() for found in _within(ast.parse(text), name, "module", sources)]


def _within(node, importer, where, sources) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        inside = where
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inside = "function"
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            inside = "typing"
        if isinstance(child, ast.Import):
            yield from (Import(importer, alias.name, inside) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{importer} has a relative import"
            for alias in child.names:
                module = f"{child.module}.{alias.name}"
                yield Import(importer, module if module in {*sources, CORE} else str(child.module), inside)
        elif isinstance(child, ast.Constant) and isinstance(child.value, str):
            module = child.value.partition(":")[0]
            if module in sources and module not in (PACKAGE, importer):
                yield Import(importer, module, "text")
        yield from _within(child, importer, inside, sources)


def ours(name):
    return name == PACKAGE or name.startswith(f"{PACKAGE}.")


def refuse_a_cycle(found):
    """Raise CycleError where a module imports, however indirectly, a module that imports it.

    A module inside a package runs the package first, for all who are not inside it themselves.
    """
    graph: dict[str, set[str]] = {}
    for importer, imported, _ in found:
        if ours(imported):
            above = set(accumulate(imported.split(".")[:-1], "{}.{}".format)) - {PACKAGE}
            above = {package for package in above if not f"{importer}.".startswith(f"{package}.")}
            graph.setdefault(importer, set()).update({imported, *above})
    TopologicalSorter(graph).prepare()


@pytest.fixture(scope="module")
def found():
    return imports(modules())


def test_no_module_imports_what_imports_it(found):
    assert len(found) > 1000
    refuse_a_cycle([one for one in found if one != REGISTRY])


def test_the_registry_is_the_reviewed_exception(found):
    assert REGISTRY in found
    with pytest.raises(CycleError):
        refuse_a_cycle(found)


def test_pictures_know_nothing_of_how_a_result_is_computed(found):
    drawing = {one.imported for one in found if one.importer.startswith(f"{PACKAGE}.figures")}
    assert f"{PACKAGE}.figures.forest" in drawing
    assert {name.split(".")[1] for name in drawing if ours(name)} <= {"_util", "errors", "figures"}


def test_types_are_imported_like_everything_else(found):
    assert [one for one in found if one.where == "typing" and ours(one.imported)] == []


def test_functions_import_only_what_an_installation_may_lack_or_what_is_slow(found):
    def roots(module):
        return {one.imported.split(".")[0] for one in found if one.importer == module and one.where == "module"}

    hidden = [one for one in found if one.where == "function" and ours(one.imported)]
    assert hidden
    assert [one for one in hidden if not roots(one.imported) & (OPTIONAL | SLOW)] == []


def test_every_extra_of_an_installation_is_known_here():
    needed = {
        need.partition(">")[0]
        for extra, needs in REQUIREMENTS.items()
        if extra not in ("test", "docs")
        for need in needs
    }
    called = {"scikit-learn": "sklearn", "vl-convert-python": "vl_convert"}
    assert {called.get(name, name) for name in needed} == OPTIONAL


CYCLES = {
    "of two": {"offpolicy.a": "import offpolicy.b", "offpolicy.b": "from offpolicy import a"},
    "in a function": {
        "offpolicy.a": "def f():\n    from offpolicy.b import g",
        "offpolicy.b": "from offpolicy.a import f",
    },
    "in a method": {
        "offpolicy.a": "class A:\n    def f(self):\n        if self:\n            import offpolicy.b",
        "offpolicy.b": "import offpolicy.a",
    },
    "for types": {
        "offpolicy.a": "if TYPE_CHECKING:\n    from offpolicy.b import B",
        "offpolicy.b": "import offpolicy.a",
    },
    "by a text": {
        "offpolicy.a": 'KINDS = {"b": "offpolicy.b"}',
        "offpolicy.b": "import offpolicy.a",
    },
    "by a text with an attribute": {
        "offpolicy.a": 'def f():\n    return load("offpolicy.b:draw")',
        "offpolicy.b": "import offpolicy.a",
    },
    "of three": {
        "offpolicy.a": "import offpolicy.b",
        "offpolicy.b": "import offpolicy.c",
        "offpolicy.c": "import offpolicy.a",
    },
    "through a package": {
        "offpolicy.room": "import offpolicy.a",
        "offpolicy.room.b": "",
        "offpolicy.a": "from offpolicy.room.b import c",
    },
}


@pytest.mark.parametrize("case", CYCLES)
def test_a_cycle_is_found(case):
    with pytest.raises(CycleError):
        refuse_a_cycle(imports(CYCLES[case]))


def test_a_package_may_import_its_own_modules():
    inside = {"offpolicy.room": "from offpolicy.room.a import f", "offpolicy.room.a": "from offpolicy.room import b"}
    refuse_a_cycle(imports({**inside, "offpolicy.room.b": ""}))
