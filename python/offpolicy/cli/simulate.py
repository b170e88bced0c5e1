"""`offpolicy simulate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import polars as pl

import offpolicy as op
from offpolicy._util import plotting
from offpolicy._util.files import whole_file
from offpolicy.cli import complete
from offpolicy.cli.names import make_domain
from offpolicy.cli.options import json_option, parameters_option, read_mixture
from offpolicy.cli.output import check_writable, one_document
from offpolicy.cli.progress import progress
from offpolicy.evaluation.plan import BEHAVIOR
from offpolicy.protocols import Domain
from offpolicy.simulation import rollouts
from offpolicy.simulation.domain_policies import domain_policy

FILE = click.Path(path_type=Path)


@click.command()
@click.argument("name", metavar="DOMAIN", shell_complete=complete.domains)
@click.option(
    "--policy",
    default=BEHAVIOR,
    show_default=True,
    metavar="NAME",
    help="Who acts: behavior, or what the domain offers; mix:NAME:ALPHA is (1-ALPHA)·NAME + ALPHA·behavior.",
)
@click.option("--episodes", type=click.IntRange(min=1), default=1000, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The same seed, the same log.")
@click.option("--out", type=FILE, required=True, metavar="FILE", help="Write the log here, as Parquet.")
@click.option("--force", is_flag=True, help="Overwrite the file of --out.")
@parameters_option("--set", "parameters", "the domain")
@click.option("--plot", type=FILE, metavar="FILE", help="Draw an episode: .svg, .png, .html or .json.")
@click.option("--plot-episode", type=click.IntRange(min=0), default=0, show_default=True, help="Which one to draw.")
@json_option
def simulate(
    name: str,
    policy: str,
    episodes: int,
    seed: int,
    out: Path,
    force: bool,
    parameters: dict[str, Any],
    plot: Path | None,
    plot_episode: int,
    as_json: bool,
) -> int:
    """Simulate a policy in a domain and write its log.

    DOMAIN is one that `offpolicy plugins` lists.
    """
    domain = make_domain(name, parameters)
    base, alpha = read_mixture(policy)
    actor = domain_policy(domain, base, alpha)
    target = check_writable(out)
    if target.exists() and not force:
        raise click.UsageError(f"--out: {str(out)!r} is there already; --force overwrites it")
    if plot is not None:
        check_plot(domain, plot, plot_episode, episodes)
    about = {"domain": name, "parameters": parameters, "policy": policy, "seed": seed, "version": op.__version__}
    notice = getattr(domain, "notice", None)
    about["notice"] = None if notice is None else str(notice)
    with whole_file(target) as beside:  # becomes the target when all is done, so that an interrupt leaves nothing
        with progress(hidden=as_json, doing="simulating", unit="episodes") as advance:
            rollouts.write(domain, actor, episodes, seed, beside, {"offpolicy": json.dumps(about)}, advance)
        ev = op.evaluate(beside, discount=domain.discount, horizon=domain.horizon, estimators=["mc"])
        if plot is not None:
            log = pl.scan_parquet(beside).filter(pl.col("episode") == plot_episode).collect()
            plotting.save(domain.plot(log, plot_episode), plot)  # type: ignore[attr-defined]
    made = {
        **about,
        "episodes": ev.episodes,
        "steps": ev.steps,
        "horizon": domain.horizon,
        "discount": domain.discount,
        "mean_return": ev["mc"].value,
        "std_error": ev["mc"].std_error,
        "out": str(out),
        "bytes": target.stat().st_size,
        "plot": None if plot is None else str(plot),
    }
    if as_json:
        click.echo(one_document(made))
    else:
        from offpolicy.cli import show

        show.simulation(made)
    return 0


def check_plot(domain: Domain, plot: Path, episode: int, episodes: int) -> None:
    """Refuse a picture that cannot be made, before any work is done."""
    if not callable(getattr(domain, "plot", None)):
        raise click.UsageError(f"--plot: domain {domain.name!r} has no picture of itself")
    if episode >= episodes:
        raise click.UsageError(f"--plot-episode: there are episodes 0 to {episodes - 1}, and no {episode}")
    check_writable(plot, "--plot")
    plotting.picture_format(plot)
