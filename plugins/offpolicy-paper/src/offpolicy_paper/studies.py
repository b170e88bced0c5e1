"""Studies for `offpolicy reproduce`: the size of each experiment, and functions that read and draw its runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
from offpolicy.experiments.claims import Claim
from offpolicy.experiments.experiment import Reader, Study
from offpolicy.experiments.figures import errors_over
from offpolicy.experiments.runs_file import Run

from offpolicy_paper import kdd98, mountain_car, safe_improvement, sailing
from offpolicy_paper.errors import Errors
from offpolicy_paper.gains_figure import gains_over_size

PAPER = "Jiang & Li (2016)"


def mountain_car_study() -> Study:
    """Return the study of Fig. 1."""
    return Study(
        source=f"{PAPER}, Fig. 1",
        domain="mountain-car",
        runs=mountain_car.RUNS,
        quick=10,
        make=mountain_car.experiment,
        read=_errors(mountain_car.claims),
        draw=_over_sizes,
    )


def sailing_study() -> Study:
    """Return the study of Fig. 2."""
    return Study(
        source=f"{PAPER}, Fig. 2",
        domain="sailing",
        runs=sailing.RUNS,
        quick=6,
        make=sailing.experiment,
        read=_errors(sailing.claims),
        draw=_over_sizes,
    )


def kdd98_study() -> Study:
    """Return the study of Fig. 3."""
    return Study(
        source=f"{PAPER}, Fig. 3",
        domain="kdd98",
        runs=kdd98.RUNS,
        quick=6,
        make=kdd98.experiment,
        read=lambda experiment, runs: (kdd98.numbers(experiment, runs), kdd98.claims(experiment, runs)),
        draw=_over_alpha,
        make_quick=kdd98.quick_experiment,
        needs=("jax", "recurrent"),
    )


def safe_improvement_study() -> Study:
    """Return the study of Fig. 4."""
    return Study(
        source=f"{PAPER}, Fig. 4",
        domain="mountain-car",
        runs=safe_improvement.RUNS,
        quick=6,
        make=safe_improvement.experiment,
        read=_gains,
        draw=gains_over_size,
    )


def _errors(claims: Callable[[Errors], list[Claim]]) -> Reader:
    """Return the reader of a comparison over |D_test|."""

    def read(experiment: Any, runs: Sequence[Run]) -> tuple[pl.DataFrame, list[Claim]]:
        errors = Errors(experiment, runs)
        return errors.numbers(), claims(errors)

    return read


def _gains(experiment: Any, runs: Sequence[Run]) -> tuple[pl.DataFrame, list[Claim]]:
    gains = safe_improvement.Gains(experiment, runs)
    return gains.numbers(), safe_improvement.claims(gains)


def _over_sizes(numbers: pl.DataFrame, title: str, subtitle: str) -> Any:
    return errors_over(numbers, "size", "|D_test|", title, subtitle, panels="alpha")


def _over_alpha(numbers: pl.DataFrame, title: str, subtitle: str) -> Any:
    donors = numbers["donors"][0]
    return errors_over(numbers, "alpha", "α", f"{title}, {donors}", subtitle, dodged=True)
