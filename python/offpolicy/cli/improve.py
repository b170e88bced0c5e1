"""`offpolicy improve`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import offpolicy as op
from offpolicy.cli import complete
from offpolicy.cli.names import check_name, choose_fitter, make_domain
from offpolicy.cli.options import bounds_options, driver_options, read_interval, read_mixture, read_names
from offpolicy.cli.output import check_target, check_writable, one_document
from offpolicy.cli.progress import progress
from offpolicy.cli.withheld import asked_for_interval, no_interval
from offpolicy.drivers.improve import AGAINST, REQUIRED
from offpolicy.drivers.improvement import files_of
from offpolicy.evaluation.estimators import averaged
from offpolicy.intervals import CHOICES
from offpolicy.protocols import Domain, Policy
from offpolicy.simulation.domain_policies import domain_policy


@click.command()
@driver_options
@click.option(
    "--generator",
    metavar="NAME",
    shell_complete=complete.generators,
    help="Where the candidates come from; by default mixture.",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME",
    callback=read_names,
    help="Instead: a policy that the domain offers, or mix:NAME:ALPHA as in cross-fit. May be repeated.",
)
@click.option(
    "--train-fraction",
    type=float,
    default=0.5,
    show_default=True,
    help="How much of the log the model gets where candidates were made from none of it.",
)
@click.option(
    "--estimator",
    default="dr",
    show_default=True,
    metavar="ID",
    shell_complete=complete.averages,
    help=f"One of {', '.join(averaged())}, or of a plugin.",
)
@click.option("--baseline", type=float, help="The constant of dr-bsl.")
@click.option("--caution", type=float, help="C of the score, gain - Cσ or V - Cσ; by default 1.")
@click.option(
    "--against",
    type=click.Choice(AGAINST),
    default="difference",
    show_default=True,
    help="Bound the paired difference from the logged policy, or as in the paper the value alone.",
)
@click.option(
    "--require",
    type=click.Choice(REQUIRED),
    default="fragile",
    show_default=True,
    help="The verdict that a winner must have at least.",
)
@click.option("--confidence", type=float, help="Level of the lower bound of --interval; by default 0.95.")
@click.option(
    "--interval",
    callback=read_interval,
    shell_complete=complete.intervals,
    metavar="METHOD",
    help=f"Instead of C errors: the lower bound of this interval, one of {', '.join(CHOICES)}, or of a plugin.",
)
@bounds_options
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Write document and figure into this folder, or one of them into a file (.json, .svg, .png, .html).",
)
def improve(
    log: tuple[str, ...],
    domain: str,
    parameters: dict[str, Any],
    generator: str | None,
    policies: tuple[str, ...],
    fitter: str,
    fitter_parameters: dict[str, Any],
    out: Path | None,
    as_json: bool,
    **settings: Any,
) -> int:
    """Find the policy with the highest lower bound, if it beats the one that made the log.

    LOG is a Parquet file, a folder or a glob; several form one log. Rows are sorted by episode and step.
    """
    if out is not None:
        check_files(out)
    made, fitted_by = make_domain(domain, parameters), choose_fitter(fitter, fitter_parameters)
    candidates = choose_generator(generator, policies, made)
    with progress(hidden=as_json, doing="evaluating", unit="candidates") as advance:
        best = op.improve(list(log), made, generator=candidates, fitter=fitted_by, progress=advance, **settings)
    written = [] if out is None else best.save(out)
    if as_json:
        click.echo(one_document(best.to_dict()))
    else:
        from offpolicy.cli import show_improvement

        show_improvement.improvement(best, written)
    if asked_for_interval() and best.candidates["score"].count() == 0:
        return no_interval(str(settings["interval"]), best.candidates["reason"].drop_nulls().to_list())
    return 0


def choose_generator(name: str | None, policies: tuple[str, ...], domain: Domain) -> str | dict[str, Policy]:
    """Return the generator's name, or the named policies of the domain."""
    if not policies:
        return check_name("offpolicy_candidate_policies", name or "mixture")
    if name is not None:
        raise click.UsageError("give --generator or --policy, not both")
    return {policy: domain_policy(domain, *read_mixture(policy)) for policy in policies}


def check_files(out: Path) -> None:
    """Refuse files that cannot be written, before any work is done."""
    files = files_of(out)
    if files == [out]:
        check_target(out)
    elif out.is_dir():
        for file in files:
            check_target(file)
    else:
        check_writable(out)
