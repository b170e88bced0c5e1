"""`offpolicy reproduce`: the paper's experiments, at its size or smaller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from offpolicy.cli import complete
from offpolicy.cli.options import json_option, parameters_option
from offpolicy.cli.output import one_document
from offpolicy.cli.progress import progress
from offpolicy.cli.refusal import INTERRUPTED
from offpolicy.experiments import reproduction
from offpolicy.experiments.runs_file import FILE

ALL = "all"


@click.command()
@click.argument("name", metavar="EXPERIMENT", shell_complete=complete.experiments)
@click.option("--runs", type=click.IntRange(min=1), help="How many; the paper's number by default.")
@click.option("--quick", is_flag=True, help="A few runs of each in a minute; kdd98 has a rougher π_train and truth.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes; one a processor by default.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The same seed, the same figure."
)
@click.option("--resume", is_flag=True, help="Go on with the runs that --out has.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("reproduction"),
    show_default=True,
    metavar="FOLDER",
    help="Write to a folder of this one, named as the experiment.",
)
@parameters_option("--set", "options", "the experiment's domain, such as substeps=1")
@click.option("--evidence", is_flag=True, help="Show what the verdict on each claim rests on.")
@json_option
def reproduce(name: str, out: Path, options: dict[str, Any], evidence: bool, as_json: bool, **settings: Any) -> int:
    """Repeat an experiment of the paper: its figure, its numbers, and which of its claims hold.

    EXPERIMENT is mountain-car, sailing, kdd98 or safe-improvement, or all of them. Ctrl-C keeps the runs that are done;
    --resume goes on with them and ends as if nothing had happened.
    """
    if name == ALL and options:
        raise click.UsageError("--set belongs to one experiment, not to all")
    if settings["quick"] and settings["runs"] is not None:
        raise click.UsageError("give --runs or --quick, not both")
    names = reproduction.names() if name == ALL else [name]
    for each in names:
        reproduction.check(each, out / each, settings["resume"])
    results = []
    for each in names:
        try:
            with progress(hidden=as_json, doing=each, unit="runs") as advance:
                result = reproduction.reproduce(each, out=out / each, options=options, progress=advance, **settings)
        except KeyboardInterrupt:
            kept = (out / each / FILE).exists()
            where = f": the runs that were done are in {out / each}; --resume goes on" if kept else " before any run"
            click.echo(f"interrupted{where}", err=True)
            return INTERRUPTED
        results.append(result)
        if not as_json:
            from offpolicy.cli import show_reproduction

            show_reproduction.reproduction(result, evidence)
    if as_json:
        documents = [{**result.to_dict(), "folder": str(result.folder)} for result in results]
        click.echo(one_document(documents[0] if name != ALL else {"experiments": documents}))
    return 0
