"""`offpolicy evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import offpolicy as op
from offpolicy._util.files import write_json
from offpolicy.cli.options import (
    dedupe_option,
    estimate_options,
    log_options,
    memory_option,
    order_option,
    truncation_option,
)
from offpolicy.cli.output import check_target, one_document
from offpolicy.cli.progress import progress
from offpolicy.cli.withheld import exit_code


@click.command()
@log_options
@click.option("--discount", type=float, default=1.0, show_default=True, help="γ, from 0 to 1.")
@estimate_options
@order_option
@dedupe_option
@truncation_option
@memory_option
@click.option("--one-pass", is_flag=True, help="Read once; no standard errors of step-wis and wdr, no magic.")
@click.option("--diagnostics", "explain", is_flag=True, help="Show what the verdict rests on, step by step.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Write the JSON document here.")
def evaluate(
    log: tuple[str, ...],
    as_json: bool,
    out: Path | None,
    one_pass: bool,
    explain: bool,
    estimators: tuple[str, ...],
    **settings: Any,
) -> int:
    """Estimate what target policies would have earned.

    LOG is a Parquet file, a folder or a glob; several form one log. Rows are sorted by episode and step. The exit code
    is 1 if no target policy has the --interval that was asked for; the estimates are shown all the same.
    """
    target = None if out is None else check_target(out)
    settings["estimators"] = list(estimators) or None
    if one_pass:
        settings["passes"] = 1
    with progress(hidden=as_json) as advance:
        ev = op.evaluate(list(log), progress=advance, **settings)
    document = ev.to_dict()
    if target is not None:
        write_json(target, document)
    if as_json:
        click.echo(one_document(document))
    else:
        from offpolicy.cli import show, show_diagnostics

        show.evaluation(ev, out)
        if explain:
            show_diagnostics.diagnostics(show.stdout(), ev)
    return exit_code(ev)
