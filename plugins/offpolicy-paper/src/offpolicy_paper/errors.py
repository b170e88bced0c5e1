"""Relative errors of the comparisons over |D_test|, and the numbers of their figures.

e = (estimate - V) / V,    relative RMSE = √(mean over runs of e²)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from offpolicy.experiments.errors import relative_summary
from offpolicy.experiments.runs_file import Run
from offpolicy.protocols import Floats

from offpolicy_paper.splits import ALPHAS, Splits

TWO_FOLD = "dr 2-fold"


class Errors:
    """Relative errors by estimator, |D_test| and α, one per run.

    Estimators without a model, and 2-fold DR, are also evaluated at the size of all the data.
    """

    def __init__(self, experiment: Splits, runs: Sequence[Run]) -> None:
        """Read the runs."""
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
        """Return e of each run."""
        return self._by[estimator, size][:, ALPHAS.index(alpha)]

    def best_size(self, estimator: str, alpha: float, among: Sequence[int] | None = None) -> int:
        """Return the |D_test| of the least error in every second run; a test of it may use the other runs, `rest`."""
        squares = {size: float(np.square(self(estimator, size, alpha)[::2]).mean()) for size in among or self.sizes}
        return min(squares, key=squares.__getitem__)

    def rest(self, estimator: str, size: int, alpha: float) -> Floats:
        """Return e of the runs that `best_size` did not use."""
        return self(estimator, size, alpha)[1::2]

    def numbers(self) -> pl.DataFrame:
        """Return one row per point of the figure."""
        return pl.DataFrame(list(self._rows()))

    def _rows(self) -> Iterator[dict[str, Any]]:
        for (estimator, size), errors in self._by.items():
            for i, alpha in enumerate(ALPHAS):
                found = relative_summary(errors[:, i], self.truth_error[:, i])
                yield {"estimator": estimator, "size": size, "alpha": alpha} | found
