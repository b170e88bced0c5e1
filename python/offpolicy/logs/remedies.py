"""The remedies for each kind of problem of a log, without those that have already been tried."""

from __future__ import annotations

from dataclasses import dataclass

from offpolicy._util.phrase import joined, phrase
from offpolicy._util.words import argument, given, switched_on, unread

BIAS = "leaving out the episodes that have one biases the answer, unless they are missing by chance"
MEND = "mend the column where it is made"
UNREAD = phrase(
    "if the column means something else, {terminal} or {truncated} leaves it unread",
    terminal=unread("terminal"),
    truncated=unread("truncated"),
)
ANEW = joined("; ", ["give these rows an episode id of their own, or mend the column", UNREAD])
FOLLOWED = joined(
    "; ", ["rows of the episode follow: give them an episode id of their own, or mend the column", UNREAD]
)
TRUNCATIONS = phrase(
    '{as_terminal} counts them as 0, "bootstrap" as the model says, "reduce-horizon" leaves such steps out for all',
    as_terminal=given("truncation", "as-terminal"),
)
SORT = phrase("if the rows are only out of order, {order} sorts the log", order=given("order", "any"))
#: Remedies that do not depend on what was done before.
ALWAYS: dict[str, str] = {
    "negative": MEND,
    "nan": f"{MEND}; {BIAS}",
    "null": f"{MEND}; {BIAS}",
    "infinite": MEND,
    "inexact-integer": "cast the column yourself",
    "mixed-ids": "cast one",
    "too-long": phrase("give a larger {horizon}, or filter the log to its first steps", horizon=argument("horizon")),
    "after-terminal": ANEW,
    "not-a-mark": MEND,
    "not-constant": "mend the column, or name another one",
}
#: Remedies for a log that has not been sorted; `ONCE_SORTED` has those for one that has been.
UNTIL_SORTED: dict[str, str] = {
    "unsorted": phrase("{order} sorts the log first", order=given("order", "any")),
    "reappears": phrase(
        "{order} brings its steps together if they are scattered; a file may be there twice",
        order=given("order", "any"),
    ),
    "gap": SORT,
    "first-step": SORT,
}
ONCE_SORTED = {
    "unsorted": "number the steps of each episode from 0",
    "reappears": "give each episode an id of its own",
    "gap": "log every step, or number the steps anew if none is missing",
    "first-step": "log the first steps too, or number the steps of each episode from 0 if none is missing",
}


@dataclass(frozen=True)
class Done:
    """The options with which a log was prepared before it was read."""

    sorted: bool = False
    deduped: bool = False
    truncation: str | None = None
    density: bool = False


def remedy(kind: str, done: Done) -> str:
    """Return the remedy for a kind of problem, or an empty text if there is none.

    >>> remedy("gap", Done())
    'if the rows are only out of order, order="any" sorts the log'
    >>> remedy("gap", Done(sorted=True))
    'log every step, or number the steps anew if none is missing'
    """
    if kind == "above-one":
        return MEND if done.density else phrase("if it is a density, say {density}", density=switched_on("density"))
    if kind == "duplicate":
        if done.deduped:
            return "the two rows differ in a column that is used: keep one of them"
        dedupe = given("dedupe", "identical")
        return phrase("{dedupe} drops rows that are equal in every column used", dedupe=dedupe)
    if kind == "truncated":
        if done.truncation is not None:
            return FOLLOWED
        return joined("; ", [TRUNCATIONS, UNREAD])
    return (ONCE_SORTED if done.sorted else UNTIL_SORTED).get(kind) or ALWAYS.get(kind, "")
