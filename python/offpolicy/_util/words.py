"""The spellings of everything that a user types, in Python and on the command line; no other module has both."""

from __future__ import annotations

from collections.abc import Iterable

from offpolicy._util.phrase import Phrase, Word, joined, phrase

#: The command-line options for the fields of `Bounds`.
BOUNDS = {"reward": "--reward-range", "ratio": "--ratio-bound", "q": "--q-range"}
#: Arguments in Python for which no command has an option.
PYTHON_ALONE = frozenset(
    {"aggregate", "bounds", "classifier", "columns", "into", "logger", "paired", "policies", "policy", "truth"}
)

#: Words that do not depend on a name.
TWO_PASSES = Word("passes=2", "a run without --one-pass")
CHECK_LISTS = phrase("{check} lists them", check=Word("op.check(log)", "offpolicy check"))
STATE_COLUMNS = Word("Columns(state=(...))", "--column state=NAME,...")
LEANER = Word("diagnostics=False or threads=1", "--threads 1")
GIVE_RATIO = Word("bounds: give ratio=", "give --ratio-bound")
GIVE_Q = Word("bounds: give q=(lowest, highest)", "give --q-range LOWEST,HIGHEST")
WRITTEN_ANEW = Word("reproduce(..., resume=True) writes it anew", "--resume writes it anew")
FOLDS = Word("folds", "--folds")
TRAIN_FRACTION = Word("train_fraction", "--train-fraction")


def argument(name: str) -> Word:
    """Return the word for an argument of a function, which is an option of a command.

    >>> argument("horizon").cli
    '--horizon'
    """
    return Word(f"{name}=", f"{name}=" if name in PYTHON_ALONE else f"--{name.replace('_', '-')}")


def given(name: str, value: str) -> Word:
    """Return the word for an argument with a text as its value.

    >>> str(given("order", "any")), given("order", "any").cli
    ('order="any"', '--order any')
    """
    return Word(f'{name}="{value}"', f"--{name} {value}")


def switched_on(name: str) -> Word:
    """Return the word for an argument that is True, which is a flag of a command.

    >>> str(switched_on("density")), switched_on("density").cli
    ('density=True', '--density')
    """
    return Word(f"{name}=True", f"{name}=True" if name in PYTHON_ALONE else f"--{name}")


def column(role: str) -> Word:
    """Return the word that names the column of a role.

    >>> column("q_hat").cli
    '--column q_hat=NAME'
    """
    return Word(f"Columns({role}=...)", f"--column {role}=NAME")


def any_column() -> Word:
    """Return the word that names columns of any roles."""
    return Word("Columns(...)", "--column ROLE=NAME")


def unread(role: str) -> Word:
    """Return the word by which a column is left unread.

    >>> unread("terminal").cli
    '--column terminal='
    """
    return Word(f"Columns({role}=None)", f"--column {role}=")


def policy_column(role: str) -> Word:
    """Return the word that names a column of one of several policies.

    >>> policy_column("target_prob").cli, policy_column("q_hat").cli
    ('--policy NAME=COLUMN', '--policy NAME=...,q_hat=COLUMN')
    """
    cli = "--policy NAME=COLUMN" if role == "target_prob" else f"--policy NAME=...,{role}=COLUMN"
    return Word(f"PolicyColumns({role}=...)", cli)


def bounds(*names: str) -> Word:
    """Return the word for bounds with these names.

    >>> str(bounds("reward", "q")), bounds("reward", "q").cli
    ('bounds=Bounds(reward=..., q=...)', '--reward-range, --q-range')
    """
    return Word(
        f"bounds=Bounds({', '.join(f'{name}=...' for name in names)})", ", ".join(BOUNDS[name] for name in names)
    )


def both(words: Iterable[Word]) -> Phrase:
    """Return several words with "and" between them."""
    return joined(" and ", map(_alone, words))


def _alone(word: Word) -> Phrase:
    return Phrase("{word}", {"word": word})
