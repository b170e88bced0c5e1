"""Every example in a docstring runs, and everything public has one."""

import doctest
import importlib
import inspect
import pkgutil

import offpolicy
import pytest

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = ["offpolicy"] + [
    info.name for info in pkgutil.walk_packages(offpolicy.__path__, "offpolicy.") if not info.name.endswith("__main__")
]
PUBLIC = [
    name
    for name in offpolicy.__all__
    if inspect.isclass(getattr(offpolicy, name)) or callable(getattr(offpolicy, name))
]


@pytest.mark.parametrize("module", MODULES)
def test_examples_run(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(module), optionflags=FLAGS)
    assert result.failed == 0


@pytest.mark.parametrize("name", PUBLIC)
def test_everything_public_has_an_example(name):
    found = doctest.DocTestFinder(exclude_empty=False).find(getattr(offpolicy, name), name)
    assert any(test.examples for test in found)


def test_the_public_names_of_the_design_are_there():
    assert {"evaluate", "check", "Columns", "PolicyColumns", "OffPolicyError", "BadLogError"} <= set(offpolicy.__all__)
