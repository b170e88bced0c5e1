"""The runs of a comparison as relative errors, and the numbers that its figure shows.

    e = (estimate - V) / V,    relative RMSE = √(mean over runs of e²)

The truth V of a run may itself be an estimate; what its error adds to the squares is taken off.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from offpolicy.experiments.runs_file import Run
from offpolicy.experiments.splits import ALPHAS, Splits
from offpolicy.protocols import Floats

TWO_FOLD = "dr 2-fold"
#: So many runs may have most of all squared errors.
FEW = 10


class Errors:
    """Relative errors by estimator, |D_test| and α, one for each run.

    Estimators that need no model, and 2-fold DR, also have the size of all the data.
    """

    def __init__(self, experiment: Splits, runs: Sequence[Run]) -> None:
        """Reads the runs."""
        self.sizes, self.total = tuple(experiment.sizes), experiment.total
        self.truth = np.array([run["truth"] for run in runs])
        self.truth_error = np.array([run["truth_error"] for run in runs]) / np.abs(self.truth)
        names = list(runs[0]["estimates"])
        self._by: dict[tuple[str, int], Floats] = {}
        for name in names:
            found = np.array([run["estimates"][name] for run in runs])
            self._by |= {(name, size): self._relative(found[:, i]) for i, size in enumerate(self.sizes)}
        for name in runs[0]["on_all"]:
            self._by[name, self.total] = self._relative(np.array([run["on_all"][name] for run in runs]))
        self._by[TWO_FOLD, self.total] = self._relative(np.array([run["two_fold_dr"] for run in runs]))

    def _relative(self, estimates: Floats) -> Floats:
        relative: Floats = (estimates - self.truth) / self.truth
        return relative

    def __call__(self, estimator: str, size: int, alpha: float) -> Floats:
        """e of each run."""
        return self._by[estimator, size][:, ALPHAS.index(alpha)]

    def best_size(self, estimator: str, alpha: float, among: Sequence[int] | None = None) -> int:
        """The |D_test| of the least error in every second run; the other runs, `rest`, may then be asked about it."""
        squares = {size: float(np.square(self(estimator, size, alpha)[::2]).mean()) for size in among or self.sizes}
        return min(squares, key=squares.__getitem__)

    def rest(self, estimator: str, size: int, alpha: float) -> Floats:
        """e of the runs that `best_size` did not look at."""
        return self(estimator, size, alpha)[1::2]

    def numbers(self) -> pl.DataFrame:
        """A row for each point of the figure."""
        return pl.DataFrame(list(self._rows()))

    def _rows(self) -> Iterator[dict[str, Any]]:
        for (estimator, size), errors in self._by.items():
            for i, alpha in enumerate(ALPHAS):
                found = relative_summary(errors[:, i], self.truth_error[:, i])
                yield {"estimator": estimator, "size": size, "alpha": alpha} | found


def relative_summary(errors: Floats, truth_errors: Floats, shared: bool = False) -> dict[str, float | None]:
    """The summary of relative errors, named so but for the share, which has no unit."""
    found = summary(errors, truth_errors, shared)
    return {name if name == "top_ten" else f"relative_{name}": value for name, value in found.items()}


def summary(errors: Floats, truth_errors: Floats, shared: bool = False) -> dict[str, float | None]:
    """RMSE and bias over runs, each with its Monte-Carlo error, which one run has not.

    Where all runs `share` a simulated truth, its error ε moves all errors alike: the bias by ε, and the RMSE by about
    ε · bias / RMSE.

    Heavy tails show in `median`, that of the absolute errors, which no outlier moves, and in `top_ten`, the share of
    the ten largest squares in the sum of all; errors as they are, with what the truth's own error adds.
    """
    root, error = root_mean_square(errors, truth_errors)
    bias, n = float(errors.mean()), len(errors)
    bias_error = float(errors.std(ddof=1) / math.sqrt(n)) if n > 1 else None
    if shared and error is not None and bias_error is not None and root > 0:
        common = float(truth_errors[0])
        error, bias_error = math.hypot(error, common * bias / root), math.hypot(bias_error, common)
    squares = np.sort(np.square(errors))
    top_ten = float(squares[-FEW:].sum() / squares.sum()) if squares[-1] > 0 else None
    tails = {"median": float(np.median(np.abs(errors))), "top_ten": top_ten}
    return {"rmse": root, "rmse_error": error, "bias": bias, "bias_error": bias_error} | tails


def root_mean_square(errors: Floats, truth_errors: Floats) -> tuple[float, float | None]:
    """Root of the mean square over runs, less what the truth's error adds, and its Monte-Carlo error."""
    squares = np.square(errors) - np.square(truth_errors)
    root = math.sqrt(max(float(squares.mean()), 0.0))
    if root == 0 or len(squares) < 2:
        return root, None
    return root, float(squares.std(ddof=1) / math.sqrt(len(squares)) / (2 * root))
