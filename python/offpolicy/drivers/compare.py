"""`op.compare`, which measures how accurate estimators are in a domain of one's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from offpolicy import _core
from offpolicy._util import plotting
from offpolicy._util.files import write_json
from offpolicy._util.scalars import MOST_THREADS, is_number, number, whole
from offpolicy._util.scratch import ScratchFolder
from offpolicy.drivers.arguments import read_domain, read_fitter, read_policies
from offpolicy.drivers.comparison import Comparison, EstimateFunction, needs_model, true_values
from offpolicy.errors.kinds.of_arguments import at_least_one, bad_value
from offpolicy.errors.kinds.of_drivers import (
    names_of_estimators,
    not_a_simulator,
    not_an_estimator,
    other_policies_in_truth,
    value_of_behavior,
)
from offpolicy.errors.kinds.of_models import too_few_episodes
from offpolicy.evaluation.estimators import RETURNS, check_ids, named
from offpolicy.experiments import figures
from offpolicy.experiments.errors import summary
from offpolicy.experiments.runs import complete
from offpolicy.experiments.runs_file import Run
from offpolicy.protocols import Domain, ModelFitter, Policy


@dataclass(frozen=True)
class Compared:
    """The result of a comparison.

    `table` has the RMSE and bias by policy, estimator and size, each with its Monte-Carlo error; `truth` has the true
    values. `top_ten` is the share of the ten largest squared errors in their sum. If it is large, a few runs make up
    most of the RMSE, and the `median` of absolute errors says more.
    """

    table: pl.DataFrame
    truth: pl.DataFrame
    settings: dict[str, Any]

    def figure(self) -> Any:
        """Return an Altair chart of log10 of the RMSE over |D|, with one panel per policy."""
        title = f"{self.settings['runs']} runs"
        return figures.errors_over(
            self.table, "size", "|D|", title, panels="policy", y="rmse", y_title="log10 of RMSE", by_id=True
        )

    def save(self, folder: str | Path) -> None:
        """Write `comparison.json`, `figure.svg` and `figure.png`."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "comparison.json", self.to_dict())
        for kind in ("svg", "png"):
            plotting.save(self.figure(), folder / f"figure.{kind}")

    def to_dict(self) -> dict[str, Any]:
        """Return the result in a form ready for JSON."""
        tables = {"truth": self.truth.to_dicts(), "table": self.table.to_dicts()}
        return {"version": _core.__version__, "settings": self.settings, **tables}


def compare(
    domain: str | Domain,
    policies: Mapping[str, Policy],
    *,
    estimators: Sequence[str | EstimateFunction] = ("step-is", "step-wis", "dr"),
    sizes: int | Sequence[int] = (100, 1000),
    runs: int = 100,
    fitter: str | ModelFitter = "tabular",
    folds: int = 2,
    baseline: float | None = None,
    truth: Mapping[str, float] | None = None,
    truth_episodes: int = 100_000,
    seed: int = 0,
    workers: int = 1,
    out: str | Path | None = None,
    resume: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Compared:
    """Measure how far estimators are from the truth, in a domain that can be simulated.

    Parameters
    ----------
    domain
        A domain with a simulator, or its name.
    policies
        The target policies, by name.
    estimators
        Ids of `evaluate`, and functions that return an estimate. A function gets a frame with the columns of `evaluate`
        and `ratio`, sorted by episode and step, and is listed under its `__name__`.
    sizes, runs
        The number of episodes of a log, one number or several, and the number of logs of each size.
    fitter, folds
        The fitter of the models that some estimators need, and the number of parts of the log: the model of a part is
        fitted to the other parts.
    baseline
        The constant c of `dr-bsl`.
    truth, truth_episodes
        The values of the policies, if they are known. Otherwise they are the domain's `value(policy)` if it has that,
        or the mean return of this many episodes; what the error of this mean adds to the RMSE is subtracted.
    seed, workers
        The same seed gives the same numbers for any number of processes. With several processes, functions must be
        defined in a module, and a script must do its work under `if __name__ == "__main__":`.
    out, resume
        A folder to keep the runs in, and whether to go on with the runs that it has. There, policies and functions are
        known by their names alone.

    Examples
    --------
    >>> import offpolicy as op
    >>> from offpolicy.testing import Walk
    >>> walk = Walk()
    >>> def zero(log):
    ...     return 0.0
    >>> found = op.compare(
    ...     walk, {"eager": walk.policies["eager"]}, estimators=["step-is", "dr", zero], sizes=[50, 200], runs=20
    ... )
    >>> found.table.filter(size=200).sort("rmse")["estimator"].to_list()
    ['dr', 'step-is', 'zero']
    """
    world = _simulator(domain)
    targets = read_policies(policies, "policies")
    ids, functions = _estimators(estimators)
    fit = read_fitter(fitter) if functions or needs_model(ids) else None
    runs, seed = whole("runs", runs, 1), whole("seed", seed, 0)
    workers = whole("workers", workers, 1, limit=MOST_THREADS)
    truth_episodes = whole("truth_episodes", truth_episodes, 2)
    folds = whole("folds", folds, 2) if fit else folds
    baseline = None if baseline is None else number("baseline", baseline)
    numbers = _sizes(sizes, folds if fit else 1)
    experiment = Comparison(world, targets, ids, functions, numbers, fit, folds, baseline)
    known = _known(truth, targets) if truth is not None else true_values(world, targets, truth_episodes, seed)
    scratch = ScratchFolder() if out is None else None
    folder = scratch.path if scratch else Path(str(out))
    folder.mkdir(parents=True, exist_ok=True)
    done = complete(experiment, runs, seed=seed, folder=folder, workers=workers, resume=resume, progress=progress)
    values = [{"policy": name, "value": value, "std_error": error} for name, (value, error) in known.items()]
    settings = experiment.settings() | {"runs": runs, "seed": seed}
    return Compared(pl.DataFrame(_rows(experiment, done, known)), pl.DataFrame(values), settings)


def _simulator(domain: Any) -> Domain:
    found: Any = read_domain(domain, None, None)
    for member in ("behavior", "simulate"):
        if getattr(found, member, None) is None:
            raise not_a_simulator(found=type(found).__name__, member=member)
    world: Domain = found
    return world


def _rows(
    experiment: Comparison, runs: Sequence[Run], truth: Mapping[str, tuple[float, float]]
) -> list[dict[str, Any]]:
    rows = []
    for policy, (value, error) in truth.items():
        for estimator in (*experiment.estimators, *experiment.functions):
            for i, size in enumerate(experiment.sizes):
                errors = np.array([run["estimates"][i][policy][estimator] - value for run in runs])
                about = {"policy": policy, "estimator": estimator, "size": size}
                rows.append(about | summary(errors, np.full(len(errors), error), shared=True))
    return rows


def _known(truth: Any, policies: Mapping[str, Policy]) -> dict[str, tuple[float, float]]:
    if not isinstance(truth, Mapping) or set(truth) != set(policies):
        given = ", ".join(map(str, truth)) if isinstance(truth, Mapping) else repr(truth)
        raise other_policies_in_truth(policies=", ".join(policies), found=given)
    for name, value in truth.items():
        if not (is_number(value) and math.isfinite(value)):
            raise bad_value(name=f"truth= of policy {name!r}", expected="a finite number", found=repr(value))
    return {name: (float(truth[name]), 0.0) for name in policies}


def _estimators(estimators: Any) -> tuple[list[str], dict[str, EstimateFunction]]:
    """Return the ids, and the functions by their names."""
    one_alone = isinstance(estimators, str) or callable(estimators) or not isinstance(estimators, Iterable)
    given = [estimators] if one_alone else list(estimators)
    ids = [one for one in given if isinstance(one, str)]
    for one in given:
        if not isinstance(one, str) and not callable(one):
            raise not_an_estimator(found=repr(one))
    functions = {getattr(one, "__name__", type(one).__name__): one for one in given if not isinstance(one, str)}
    if not given:
        raise at_least_one(what="compare needs", thing="estimator")
    if ids:
        check_ids(ids)
    if RETURNS in ids:
        others = ", ".join(named(lambda about: not about.of_behavior))
        raise value_of_behavior(estimator=repr(RETURNS), target="target", others=f"choose of {others}")
    if len(functions) + len(set(ids)) < len(given) or set(functions) & set(named()):
        raise names_of_estimators()
    return ids, functions


def _sizes(sizes: Any, folds: int) -> list[int]:
    """Return the sizes in increasing order, each once."""
    given = sizes if isinstance(sizes, Iterable) else [sizes]
    found = sorted({whole("a size", size, 1) for size in given})
    if not found:
        raise at_least_one(what="compare needs", thing="size")
    if found[0] < folds:
        raise too_few_episodes(episodes=found[0], folds=folds)
    return found
