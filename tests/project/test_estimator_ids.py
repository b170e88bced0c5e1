"""No module tests for an estimator by its id: what it has to know of an estimator is a trait of its description."""

import ast

import pytest
from offpolicy.evaluation.estimators import named
from places import ROOT

PACKAGE = ROOT / "python" / "offpolicy"
#: The experiments name the estimators of the paper's figures, their legends and colours.
NAMES_ESTIMATORS = {"experiments"}
COLLECTIONS = (ast.Tuple, ast.List, ast.Set)


def modules():
    files = (file for file in PACKAGE.rglob("*.py") if file.relative_to(PACKAGE).parts[0] not in NAMES_ESTIMATORS)
    return sorted(files)


def is_id(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value in named()


def members(node: ast.AST) -> list[ast.AST]:
    """Return the elements of a literal collection, also of set(...) or frozenset(...) of one."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("set", "frozenset", "tuple"):
        return [element for argument in node.args for element in members(argument)]
    return node.elts if isinstance(node, COLLECTIONS) else []


def recognised_ids(tree: ast.AST) -> list[int]:
    """Return the lines on which an id is compared, looked for, a key, a case, or one of a set that has a name."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Compare():
                operands = [node.left, *node.comparators]
                suspects = operands + [element for operand in operands for element in members(operand)]
            case ast.Dict():
                suspects = node.keys
            case ast.MatchValue():
                suspects = [node.value]
            case ast.Assign() | ast.AnnAssign() if node.value is not None:
                suspects = members(node.value)
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr() | ast.Sub()):
                suspects = members(node.left) + members(node.right)
            case ast.Call(func=ast.Attribute(attr="is_in" | "isdisjoint" | "intersection" | "issubset")):
                suspects = [element for argument in node.args for element in members(argument)]
            case _:
                continue
        found += [node.lineno for suspect in suspects if is_id(suspect)]
    return found


@pytest.mark.parametrize("file", modules(), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_no_estimator_is_recognised_by_its_id(file):
    assert recognised_ids(ast.parse(file.read_text())) == []


@pytest.mark.parametrize(
    "code",
    [
        'estimator == "dr"',
        '"mc" in asked',
        'name in ("is", "wis")',
        'NEEDS = {"dr": ("ratio",)}',
        'WHOLE = ("is", "wis")',
        'WEIGHTED: frozenset[str] = frozenset({"wis"})',
        'used & {"is"}',
        'match estimator:\n    case "dr-v2":\n        pass',
        'pl.col("estimator").is_in(["reg"])',
    ],
)
def test_such_code_would_be_found(code):
    assert recognised_ids(ast.parse(code))


@pytest.mark.parametrize("code", ['evaluate(log, estimators=["mc"])["mc"]', 'def f(estimator="dr"): ...'])
def test_to_name_an_estimator_that_is_asked_for_is_no_test_of_its_id(code):
    assert not recognised_ids(ast.parse(code))


def test_there_are_modules_to_read():
    assert len(modules()) > 100
