"""What can become of one attack, and how an attempt is judged.

    right      the number of the undamaged input, bit for bit
    readable   another number, and the right one of what the input now says: an independent reader finds the same
               content in it, and no checksum of the input covers what was changed
    refused    an error of ours, which names the file where there is one
    refused in a query
               the same, where a user's own query of Polars was read: Polars may have printed the text of a panic
    unseen     another number that no reader can tell from an honest one; only forged states have these

Anything else is a failure: another number without a word, a panic, an abort, a hang, an error of a dependency.
"""

from collections.abc import Callable

import offpolicy as op
import polars as pl
from offpolicy.errors import InternalError

RIGHT, READABLE, REFUSED, UNSEEN, FAILURE = "right", "readable", "refused", "unseen", "failure"
BY_POLARS, ALOUD = "refused in a query", "refused in a query, with a panic of Polars on standard error"


def failure(why: object) -> str:
    """Return a failure with its reason in one line."""
    return f"{FAILURE}: {' '.join(str(why).split())[:500]}"


def refusal(error: op.OffPolicyError, name: str | None = None) -> str:
    """Judge an error of ours: it is not internal, and it names the input where that has a name."""
    if isinstance(error, InternalError):
        return failure(f"InternalError: {error}")
    if name is not None and name not in str(error):
        return failure(f"{type(error).__name__} without the name {name}: {error}")
    return REFUSED


def judged(work: Callable[[], pl.DataFrame], expected: pl.DataFrame, name: str | None = None) -> str | pl.DataFrame:
    """Return the outcome of work whose right result is known, or a result that is another one."""
    try:
        found = work()
    except op.OffPolicyError as error:
        return refusal(error, name)
    except BaseException as error:
        return failure(f"{type(error).__name__}: {error}")
    return RIGHT if found.equals(expected) else found
