"""How to go on, for each kind of problem of a log: only what has not been done already."""

from __future__ import annotations

from dataclasses import dataclass

BIAS = "leaving out the episodes that have one biases the answer, unless they are missing by chance"
MEND = "mend the column where it is made"
UNREAD = "if the column means something else, Columns(terminal=None) or Columns(truncated=None) leaves it unread"
TRUNCATIONS = (
    'truncation="as-terminal" counts them as 0, "bootstrap" as the model says, "reduce-horizon" leaves such steps out '
    "for all"
)
#: What helps whatever was done before.
ALWAYS = {
    "negative": MEND,
    "nan": f"{MEND}; {BIAS}",
    "null": f"{MEND}; {BIAS}",
    "infinite": MEND,
    "inexact-integer": "cast the column yourself",
    "mixed-ids": "cast one",
    "too-long": "give a larger horizon=, or filter the log to its first steps",
    "after-terminal": f"give these rows an episode id of their own, or mend the column; {UNREAD}",
    "not-a-mark": MEND,
    "not-constant": "mend the column, or name another one",
}
#: What sorting does for a log, and what is left to do for one that has been sorted.
UNTIL_SORTED = {
    "unsorted": 'order="any" sorts the log first',
    "reappears": 'order="any" brings its steps together if they are scattered; a file may be there twice',
    "gap": 'if the rows are only out of order, order="any" sorts the log',
    "first-step": 'if the rows are only out of order, order="any" sorts the log',
}
ONCE_SORTED = {
    "unsorted": "number the steps of each episode from 0",
    "reappears": "give each episode an id of its own",
    "gap": "log every step, or number the steps anew if none is missing",
    "first-step": "log the first steps too, or number the steps of each episode from 0 if none is missing",
}


@dataclass(frozen=True)
class Done:
    """What was done with a log before it was read."""

    sorted: bool = False
    deduped: bool = False
    truncation: str | None = None
    density: bool = False


def remedy(kind: str, done: Done) -> str:
    """Return how to go on; nothing where there is nothing to say.

    >>> remedy("gap", Done())
    'if the rows are only out of order, order="any" sorts the log'
    >>> remedy("gap", Done(sorted=True))
    'log every step, or number the steps anew if none is missing'
    """
    if kind == "above-one":
        return MEND if done.density else "if it is a density, say density=True"
    if kind == "duplicate":
        if done.deduped:
            return "the two rows differ in a column that is used: keep one of them"
        return 'dedupe="identical" drops rows that are equal in every column used'
    if kind == "truncated":
        if done.truncation is not None:
            return f"rows of the episode follow: give them an episode id of their own, or mend the column; {UNREAD}"
        return f"{TRUNCATIONS}; {UNREAD}"
    return (ONCE_SORTED if done.sorted else UNTIL_SORTED).get(kind) or ALWAYS.get(kind, "")
