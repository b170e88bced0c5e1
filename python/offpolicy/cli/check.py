"""`offpolicy check`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

import offpolicy as op
from offpolicy.cli.options import dedupe_option, log_options, order_option
from offpolicy.cli.output import one_document
from offpolicy.cli.progress import progress


@click.command()
@log_options
@order_option
@dedupe_option
@click.option("--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="Most problems to list.")
def check(log: tuple[str, ...], as_json: bool, **settings: Any) -> int:
    """List everything that is wrong with a log, with file, episode and step.

    LOG is a Parquet file, a folder or a glob; several form one log. The exit code is 1 if there is a problem.
    """
    with progress(hidden=as_json) as advance:
        report = op.check(list(log), progress=advance, **settings)
    if as_json:
        problems = [asdict(problem) for problem in report.problems]
        found = {"found": report.found, "episodes": report.episodes, "rows": report.rows}
        document = {
            "version": op.__version__,
            "ok": report.ok,
            **found,
            "kinds": [asdict(kind) for kind in report.kinds],
            "problems": problems,
        }
        click.echo(one_document(document))
    else:
        from offpolicy.cli import show

        show.report(report)
    return 0 if report.ok else 1
