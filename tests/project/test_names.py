"""A name means one thing: no module hides behind its own function, and no type has the name of another one."""

import ast
import importlib
import pkgutil
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import offpolicy
import pytest
from places import ROOT

MODULES = [
    info.name for info in pkgutil.walk_packages(offpolicy.__path__, "offpolicy.") if not info.name.endswith("__main__")
]


def hidden(module: str) -> object | None:
    """Return what stands in a package where one of its modules should, or None."""
    importlib.import_module(module)
    package, _, name = module.rpartition(".")
    found = getattr(sys.modules[package], name)
    return None if found is sys.modules[module] else found


@pytest.mark.parametrize("module", MODULES)
def test_no_module_is_hidden_by_what_its_package_imports(module):
    assert hidden(module) is None


def test_a_hidden_module_is_found(monkeypatch):
    room, verb = ModuleType("room"), ModuleType("room.sort")
    room.sort = sorted
    monkeypatch.setitem(sys.modules, "room", room)
    monkeypatch.setitem(sys.modules, "room.sort", verb)
    assert hidden("room.sort") is sorted


def python_types(folder: Path) -> list[str]:
    trees = (ast.parse(path.read_text()) for path in sorted(folder.rglob("*.py")))
    return [node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


RUST_TYPE = re.compile(r"^\s*pub(?:\([a-z]+\))? (?:struct|enum|trait|type) (\w+)", re.MULTILINE)


def rust_types(folder: Path) -> set[tuple[str, str]]:
    """Return the names of types that others see, with the room of each."""
    files = [(path.relative_to(folder).parts[0], path.read_text()) for path in sorted(folder.rglob("*.rs"))]
    return {(name, room) for room, text in files for name in RUST_TYPE.findall(text)}


def test_no_type_of_the_package_has_the_name_of_another():
    found = Counter(python_types(ROOT / "python" / "offpolicy"))
    assert len(found) > 150
    assert [name for name, times in found.items() if times > 1] == []


def test_no_type_of_the_core_has_the_name_of_one_in_another_room():
    found = Counter(name for name, _ in rust_types(ROOT / "rust" / "core" / "src"))
    assert len(found) > 40
    assert [name for name, times in found.items() if times > 1] == []


def test_types_are_found_wherever_they_stand(tmp_path):
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "a.py").write_text("class One:\n    class Inner:\n        pass\n")
    (tmp_path / "b.py").write_text("def f():\n    class One:\n        pass\n")
    (tmp_path / "room" / "c.rs").write_text("pub struct Two<'a> {\n}\npub(crate) enum Two {}\nstruct Private;\n")
    assert Counter(python_types(tmp_path)) == {"One": 2, "Inner": 1}
    (tmp_path / "hall").mkdir()
    (tmp_path / "hall" / "d.rs").write_text("pub type Two = Three;\n")
    assert rust_types(tmp_path) == {("Two", "room"), ("Two", "hall")}
