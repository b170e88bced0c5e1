"""`offpolicy cross-fit`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import offpolicy as op
from offpolicy._util.files import write_json
from offpolicy.cli.names import choose_fitter, make_domain
from offpolicy.cli.options import driver_options, estimate_options, read_mixture, read_names
from offpolicy.cli.output import check_target, one_document
from offpolicy.cli.progress import progress
from offpolicy.cli.withheld import exit_code
from offpolicy.simulation.domain_policies import domain_policy


@click.command(name="cross-fit")
@driver_options
@click.option(
    "--policy",
    "policies",
    multiple=True,
    required=True,
    metavar="NAME",
    callback=read_names,
    help="A target policy that the domain offers; mix:NAME:ALPHA is (1-ALPHA)·NAME + ALPHA·behavior. May be repeated.",
)
@click.option("--folds", type=click.IntRange(min=2), help="k, at most the number of episodes; 2 by default.")
@click.option("--train-fraction", type=float, help="Instead of folds: the share of episodes to fit the model to.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another one makes other folds.")
@estimate_options
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Write the JSON document here.")
def cross_fit(
    log: tuple[str, ...],
    domain: str,
    parameters: dict[str, Any],
    policies: tuple[str, ...],
    fitter: str,
    fitter_parameters: dict[str, Any],
    estimators: tuple[str, ...],
    as_json: bool,
    out: Path | None,
    **settings: Any,
) -> int:
    """Estimate with models fitted on other episodes than those they evaluate.

    LOG is a Parquet file, a folder or a glob; several form one log. Rows are sorted by episode and step. The exit code
    is 1 if no policy has the --interval that was asked for; the estimates are shown all the same.
    """
    target = None if out is None else check_target(out)
    made, fitted_by = make_domain(domain, parameters), choose_fitter(fitter, fitter_parameters)
    with progress(hidden=as_json, doing="fitting", unit="folds") as advance:
        cf = op.cross_fit(
            list(log),
            made,
            policy={name: domain_policy(made, *read_mixture(name)) for name in policies},
            fitter=fitted_by,
            estimators=list(estimators) or None,
            progress=advance,
            **settings,
        )
    document = cf.to_dict()
    if target is not None:
        write_json(target, document)
    if as_json:
        click.echo(one_document(document))
    else:
        from offpolicy.cli import show

        show.evaluation(cf.evaluation, out, cf.folds)
    return exit_code(cf.evaluation)
