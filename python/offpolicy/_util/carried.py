"""Errors of this package that cross a Polars query without loss.

Polars rebuilds an error of a Python function from its class and a longer text, and an Arrow stream keeps only the text.
So a query names each such function in its plan, and the function keeps the errors that it raised under this name.
"""

from __future__ import annotations

import re
from collections import deque
from contextlib import suppress
from copy import copy
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import polars as pl

from offpolicy.errors import OffPolicyError

#: The number of errors that are kept for one function; its batches may fail on several threads at once.
KEPT = 64
#: The names of such functions in a plan.
NAME = re.compile("__offpolicy_made_[0-9]+__")

_numbers = count()
_all: WeakValueDictionary[str, Failures] = WeakValueDictionary()


class Failures:
    """The latest errors of one function in a query; they live as long as the function does.

    Copies are kept and raised: a traceback would keep the log alive, and the log keeps this object.
    """

    def __init__(self) -> None:
        """Choose a name for the plan of the query, which no other function of this process has."""
        self.name = f"__offpolicy_made_{next(_numbers)}__"
        self.errors: deque[OffPolicyError] = deque(maxlen=KEPT)
        _all[self.name] = self

    def carried(self, error: OffPolicyError) -> OffPolicyError:
        """Keep an error, and return one of its kind that stays whole if Polars builds it again.

        >>> import offpolicy as op
        >>> made = Failures().carried(op.BadFileError("a.parquet", "it is empty"))
        >>> type(made)("a longer text")
        BadFileError('a.parquet: it is empty')
        """
        kept, cls = copy(error), type(error)
        self.errors.append(kept)
        again: Any = type(cls.__name__, (cls,), {"__new__": lambda *_, **__: copy(kept), "__module__": cls.__module__})
        made: OffPolicyError = cls.__new__(again, *error.args)
        made.__dict__.update(error.__dict__)
        return made


def kept_error(query: pl.LazyFrame, said: str) -> OffPolicyError | None:
    """Return the error that a function of this query raised and that the text of another error cites."""
    plan = ""
    with suppress(Exception):  # a query may fail while it is explained, as when its files are gone
        plan = query.explain(optimized=False)
    for name in dict.fromkeys(NAME.findall(plan)):
        failures = _all.get(name)
        for kept in reversed(list(failures.errors) if failures is not None else []):
            if f"{type(kept).__name__}: {kept}" in said:
                return copy(kept)
    return None
