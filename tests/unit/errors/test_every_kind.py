"""Every kind of error has a message in both words, a remedy, a heading in the docs, and a way to bring it about."""

import ast
import pickle
import re

import error_index
import error_triggers
import model_error_triggers
import offpolicy as op
import pytest
import run_error_triggers
from offpolicy import errors
from offpolicy._util.phrase import Phrase, Word, in_words
from offpolicy._util.words import BOUNDS
from offpolicy.cli import main
from offpolicy.errors.kinds import KINDS, ROOMS
from offpolicy.logs.problem_kinds import PROBLEMS
from places import ROOT

TRIGGERS = {**error_triggers.TRIGGERS, **model_error_triggers.TRIGGERS, **run_error_triggers.TRIGGERS}
PACKAGE = ROOT / "python" / "offpolicy"
CLASSES = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
#: Calls of a class of errors outside the catalogue, by file, with the reason.
REVIEWED = {
    "annotation/annotate.py": {"OffPolicyError"},  # Polars makes an error anew from its class and text alone
    "logs/sources.py": {"OffPolicyError"},  # an error again, with the name of a file in the place of its path
}
#: Classes whose arguments are data already: problems of rows.
OF_DATA = {"BadLogError"}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_kind_says_what_is_wrong_and_what_to_do_in_both_words(kind):
    assert set(kind.example) == kind.fields
    assert kind.meaning.endswith(".")
    for text in kind.rendered(**kind.example):
        for words in ("python", "cli"):
            said = in_words(text, words)
            assert said
            assert "{" not in said.replace('{"', "")
    assert kind.rendered(**kind.example)[1].endswith(".")


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_can_be_brought_about(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(op.OffPolicyError) as caught:
        TRIGGERS[kind](tmp_path)
    error = caught.value
    assert error.kind == kind
    assert isinstance(error, KINDS[kind].error)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.kind) == (type(error), str(error), kind)
    assert again.in_words("cli") == error.in_words("cli")
    names = KINDS[kind].fields | KINDS[kind].words.keys()
    assert error.parameters.keys() == (names if kind != "bad-log" else set())  # its problems are its parameters
    assert error.remedy


def test_nothing_is_brought_about_that_is_no_kind():
    assert set(TRIGGERS) == set(KINDS)


def test_the_name_of_a_kind_is_its_id():
    for room in ROOMS:
        for name, kind in vars(room).items():
            if kind in KINDS.values():
                assert name == kind.id.replace("-", "_")


def test_the_error_index_is_made_of_the_catalogue():
    assert error_index.PAGE.read_text() == error_index.page()
    headings = re.findall(r"^### (.+)$", error_index.PAGE.read_text(), re.MULTILINE)
    assert headings == [*KINDS, *PROBLEMS]
    assert len(set(headings)) == len(headings)


def test_every_kind_of_problem_of_the_core_is_in_the_index():
    source = (ROOT / "rust" / "core" / "src" / "log" / "problem.rs").read_text()
    body = source.split("pub enum Kind {")[1].split("}")[0]
    names = re.findall(r"^    (\w+),$", body, re.MULTILINE)
    ids = {re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower() for name in names}
    assert len(ids) == 17
    assert ids <= set(PROBLEMS)


def calls(path):
    """The calls in a module, each with the name that is called."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id, node


def modules():
    return [path for path in PACKAGE.rglob("*.py") if PACKAGE / "errors" not in path.parents]


def test_no_module_words_an_error_of_its_own():
    found = {}
    for path in modules():
        for name, _ in calls(path):
            if name in CLASSES - OF_DATA:
                found.setdefault(str(path.relative_to(PACKAGE)), set()).add(name)
    assert {file: names for file, names in found.items() if not names <= REVIEWED.get(file, set())} == {}


def test_every_raise_gives_the_parameters_of_its_kind():
    by_name = {id.replace("-", "_"): kind for id, kind in KINDS.items()}
    used = set()
    for path in modules():
        imported = {
            alias.name
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("offpolicy.errors.kinds")
            for alias in node.names
        }
        used |= imported
        for name, call in calls(path):
            if name in imported and None not in (names := {keyword.arg for keyword in call.keywords}):
                assert names == by_name[name].fields, f"{path}:{call.lineno}"
    of_the_core = {"bad_log", "bad_input", "broken_stream", "foreign_state", "internal"}
    assert set(by_name) - used == of_the_core


def options(command):
    own = {name for parameter in command.params for name in parameter.opts}
    return own.union(*(options(each) for each in getattr(command, "commands", {}).values()))


def words_of(value):
    if isinstance(value, Word):
        yield value
    if isinstance(value, Phrase):
        for each in value.parameters.values():
            yield from words_of(each)


def test_the_options_that_messages_name_exist():
    values = [text for kind in KINDS.values() for text in kind.rendered(**kind.example)]
    spelled = {option for text in values for word in words_of(text) for option in re.findall(r"--[\w-]+", word.cli)}
    assert {"--horizon", "--truncation", "--column", *BOUNDS.values()} - {"--q-range"} <= spelled
    assert spelled <= options(main.command if hasattr(main, "command") else _group())


def _group():
    from offpolicy import cli

    return next(value for value in vars(cli).values() if hasattr(value, "commands"))


def test_an_error_of_a_plugin_needs_no_kind():
    error = op.UsageError("size must be 1")
    assert (error.kind, error.remedy, error.parameters, str(error)) == (None, "", {}, "size must be 1")
    assert error.in_words("cli") == "size must be 1"
