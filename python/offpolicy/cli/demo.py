"""`offpolicy demo`."""

from __future__ import annotations

import click

import offpolicy as op
from offpolicy.cli.options import json_option
from offpolicy.cli.output import one_document
from offpolicy.demo import DEMO_DISCOUNT

BASELINE = 0.3


@click.command()
@json_option
def demo(as_json: bool) -> int:
    """Evaluate a small log whose true value is known, with every estimator."""
    truth = op.demo_value()
    ev = op.evaluate(op.demo_log(), discount=DEMO_DISCOUNT, baseline=BASELINE)
    if as_json:
        click.echo(one_document(ev.to_dict() | {"truth": truth}))
    else:
        from offpolicy.cli import show

        show.demo(ev, truth)
    return 0
