"""`offpolicy cross-fit`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import offpolicy as op
from offpolicy.arguments import COUNTS
from offpolicy.cli.names import make_domain, make_fitter
from offpolicy.cli.options import (
    column_option,
    estimate_options,
    json_option,
    log_argument,
    parameters_option,
    read_mixture,
    read_names,
    threads_option,
)
from offpolicy.cli.output import check_target, one_document, write_document
from offpolicy.cli.progress import progress
from offpolicy.domain_policies import domain_policy


@click.command(name="cross-fit")
@log_argument
@column_option
@click.option("--domain", required=True, metavar="NAME", help="What made the log; `offpolicy plugins` lists them.")
@parameters_option("--set", "parameters", "the domain")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    required=True,
    metavar="NAME",
    callback=read_names,
    help="A target policy that the domain offers; mix:NAME:ALPHA is (1-ALPHA)·NAME + ALPHA·behavior. May be repeated.",
)
@click.option("--fitter", default="tabular", show_default=True, metavar="NAME", help="What fits the model.")
@parameters_option("--fitter-set", "fitter_parameters", "the fitter")
@click.option("--folds", type=click.IntRange(min=2), help="k, at most the number of episodes; 2 by default.")
@click.option("--train-fraction", type=float, help="Instead of folds: the share of episodes to fit the model to.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another one makes other folds.")
@click.option("--behavior", type=click.Choice([COUNTS]), help="Estimate the behaviour probabilities, by counts.")
@click.option("--smoothing", type=float, default=1.0, show_default=True, help="What is added to each count.")
@click.option("--discount", type=float, help="γ; by default the domain's.")
@click.option("--horizon", type=click.IntRange(min=1), help="H; by default the domain's.")
@estimate_options
@click.option("--order", type=click.Choice(["sorted", "any"]), default="sorted", help="any: sort the log first.")
@click.option("--truncation", type=click.Choice(["as-terminal"]), help="Take episodes that were cut as ended.")
@threads_option
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Write the JSON document here.")
@json_option
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

    LOG is a Parquet file, a folder or a glob; several form one log. Rows are sorted by episode and step.
    """
    target = None if out is None else check_target(out)
    made, fitted_by = make_domain(domain, parameters), make_fitter(fitter, fitter_parameters)
    with progress(hidden=as_json, doing="fitting", unit="folds") as advance:
        cf = op.cross_fit(
            list(log),
            policy={name: domain_policy(made, *read_mixture(name)) for name in policies},
            domain=made,
            fitter=fitted_by if fitter_parameters else fitter,
            estimators=list(estimators) or None,
            progress=advance,
            **settings,
        )
    document = cf.to_dict()
    if target is not None:
        write_document(target, document)
    if as_json:
        click.echo(one_document(document))
    else:
        from offpolicy.cli import show

        show.evaluation(cf.evaluation, out, cf.folds)
    return 0
