"""Protocols of an experiment, which is run many times, and of a study, which also reads and draws its runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import polars as pl

from offpolicy.experiments.claims import Claim
from offpolicy.experiments.runs_file import Run


class Experiment(Protocol):
    """An experiment that is run many times; it must be picklable to run in other processes."""

    @property
    def name(self) -> str:
        """The name of the experiment."""
        ...

    def settings(self) -> dict[str, Any]:
        """Return everything that the numbers depend on except the seed, ready for JSON."""
        ...

    def run(self, seed: np.random.SeedSequence) -> Run:
        """Do one run and return its numbers and lists, ready for JSON."""
        ...


#: Maps an experiment and its runs to a table of numbers and the claims.
Reader = Callable[[Any, Sequence[Run]], tuple[pl.DataFrame, list[Claim]]]


@dataclass(frozen=True)
class Study:
    """The description of an experiment for `offpolicy reproduce`, available before the experiment is made.

    Parameters
    ----------
    source
        Where the experiment was published, for the result file: "Jiang & Li (2016), Fig. 1".
    domain
        The name of the domain that it simulates.
    runs, quick
        The number of runs, and of runs in a quick reproduction.
    make
        Makes the experiment from options of its domain, which are keywords. Its settings have a `domain`, which is
        shown under the title of the figure.
    read
        Returns a table of numbers and the claims, from the experiment and its runs.
    draw
        Returns an Altair chart from the numbers, a title and the domain.
    make_quick
        Makes a less precise experiment, if making it takes long. Its settings say in `quick` what is less precise.
    needs
        An optional module, and the extra of `offpolicy` that installs it.
    """

    source: str
    domain: str
    runs: int
    quick: int
    make: Callable[..., Experiment]
    read: Reader
    draw: Callable[[pl.DataFrame, str, str], Any]
    make_quick: Callable[..., Experiment] | None = None
    needs: tuple[str, str] | None = None
