"""The stub of the extension module says what the module has: names, and names of parameters."""

import ast
import inspect
from pathlib import Path

import offpolicy
import pytest
from offpolicy import _core

STUB = ast.parse((Path(offpolicy.__file__).parent / "_core.pyi").read_text())


def members(node):
    return {item.name: item for item in node.body if isinstance(item, ast.FunctionDef | ast.ClassDef)}


def public(module):
    return {name for name, value in vars(module).items() if not name.startswith("_") and callable(value)}


def test_stub_names_are_the_modules():
    assert set(members(STUB)) == public(_core)


@pytest.mark.parametrize("name", [name for name, node in members(STUB).items() if isinstance(node, ast.FunctionDef)])
def test_stub_parameters_are_the_functions(name):
    written = [argument.arg for argument in members(STUB)[name].args.args]
    assert written == list(inspect.signature(getattr(_core, name)).parameters)


@pytest.mark.parametrize("name", [name for name, node in members(STUB).items() if isinstance(node, ast.ClassDef)])
def test_stub_members_are_the_classes(name):
    found = {member for member in vars(getattr(_core, name)) if not member.startswith("_")}
    written = members(members(STUB)[name])
    assert {member for member in written if not member.startswith("_")} == found
    if "__init__" in written:
        parameters = [argument.arg for argument in written["__init__"].args.args[1:]]
        assert parameters == list(inspect.signature(getattr(_core, name)).parameters)
