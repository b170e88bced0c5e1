"""The exit code for intervals that were requested and withheld.

It is 1 if `--interval` was given and no estimate of a target policy has such an interval; the numbers are shown and
written all the same. If some estimates have one, the code is 0 and the others have their reasons.
"""

from __future__ import annotations

import click

from offpolicy._util.phrase import in_words
from offpolicy._util.visible import visible
from offpolicy.evaluation.plan import BEHAVIOR
from offpolicy.evaluation.result import Evaluation

#: How many reasons are shown.
SHOWN = 3


def asked_for_interval() -> bool:
    """Return whether the user chose the interval."""
    source = click.get_current_context().get_parameter_source("interval")
    return source is click.core.ParameterSource.COMMANDLINE


def exit_code(ev: Evaluation) -> int:
    """Return 1, with a message on stderr, if the requested interval is withheld from every target policy, else 0."""
    targets = [estimate for estimate in ev.estimates if estimate.policy != BEHAVIOR] or list(ev.estimates)
    intervals = [estimate.own_interval for estimate in targets]
    if not asked_for_interval() or any(end is not None for each in intervals for end in (each.low, each.high)):
        return 0
    return no_interval(str(ev.settings["interval"]), [each.reason or "" for each in intervals])


def no_interval(method: str, reasons: list[str]) -> int:
    """Report that no estimate has the interval and why, and return the exit code."""
    found = list(dict.fromkeys(in_words(reason, "cli") for reason in reasons if reason))
    why = "; ".join(found[:SHOWN]) + (f"; and {len(found) - SHOWN} more reasons" if len(found) > SHOWN else "")
    click.echo(f"error: no {method} interval could be made: {visible(why)}", err=True)
    return 1
