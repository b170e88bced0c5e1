"""Write docs/reference/errors.md, the index of all errors, from the catalogue in `offpolicy.errors.kinds`."""

from pathlib import Path
from types import ModuleType

from offpolicy._util.phrase import in_words
from offpolicy.errors.kind import Kind, declared
from offpolicy.errors.kinds import ROOMS
from offpolicy.logs import remedies
from offpolicy.logs.problem_kinds import PROBLEMS, ProblemText

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "errors.md"
HEAD = """# Error index

Every error that offpolicy raises on purpose is of one of the kinds below. All of them are subclasses of
`OffPolicyError`, which is a `ValueError`. An error knows its kind (`error.kind`, one of the headings), the parameters
of its message (`error.parameters`) and what to do about it (`error.remedy`). On the command line the same message is
said in the words of the options, with exit code 2 for `UsageError` and 1 for the others; `--json` prints the kind too.

This page is written by `tools/error_index.py` from the catalogue in `offpolicy.errors.kinds`.
"""
PROBLEMS_HEAD = """
## Problems of a log

A `BadLogError` lists problems of single rows. Each has one of these kinds, as `problem.kind`.
"""


def page() -> str:
    """Return the whole page."""
    return "".join([HEAD, *map(section, ROOMS), PROBLEMS_HEAD, *map(problem, PROBLEMS.values())])


def section(room: ModuleType) -> str:
    """Return the kinds of one module of the catalogue."""
    title = room.__name__.rpartition(".of_")[2].capitalize()
    about = (room.__doc__ or "").strip()
    return f"\n## {title}\n\n{about}\n" + "".join(map(entry, declared(vars(room))))


def entry(kind: Kind) -> str:
    """Return the heading of a kind with its meaning, an example and what to do."""
    message, remedy = kind.rendered(**kind.example)
    python, cli = in_words(message, "python"), in_words(message, "cli")
    parts = [f"### {kind.id}", kind.meaning, f"    {kind.error.__name__}: {python}"]
    if cli != python:
        parts += ["On the command line:", f"    error: {cli}"]
    return "\n" + "\n\n".join([*parts, f"What to do: {remedy}"]) + "\n"


def problem(text: ProblemText) -> str:
    """Return the heading of a kind of problem with what was expected and what to do."""
    advice = remedies.remedy(text.id, remedies.Done()) or text.remedy
    sentence = f"{advice[:1].upper()}{advice[1:]}."
    return f"\n### {text.id}\n\n{text.meaning}\n\nWhat to do: {sentence}\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page())
