"""An experiment, which is run many times, and a study: an experiment with all that is read from its runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import polars as pl

from offpolicy.experiments.claims import Claim
from offpolicy.experiments.runs_file import Run


class Experiment(Protocol):
    """What is run many times; to travel to other processes it must be picklable."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def settings(self) -> dict[str, Any]:
        """Return all that the numbers depend on but the seed, ready for JSON."""
        ...

    def run(self, seed: np.random.SeedSequence) -> Run:
        """Do one run and return its numbers and lists, ready for JSON."""
        ...


#: Numbers and claims of an experiment's runs.
Reader = Callable[[Any, Sequence[Run]], tuple[pl.DataFrame, list[Claim]]]


@dataclass(frozen=True)
class Study:
    """What `offpolicy reproduce` needs to know of an experiment, all of it before the experiment is made.

    Parameters
    ----------
    source
        Where the experiment was published, for the result file: "Jiang & Li (2016), Fig. 1".
    domain
        The name of the domain that it simulates.
    runs, quick
        How many runs it has, and how many where a few will do.
    make
        Makes the experiment from options of its domain, all of them keywords. Its settings have a `domain`, which
        stands under the title of the figure.
    read
        Gives a table of numbers and the claims, from the experiment and its runs.
    draw
        Gives an Altair chart from the numbers, a title and the domain.
    make_quick
        Makes a rougher experiment, where making it takes long. Its settings say in `quick` what is rougher.
    needs
        A module that not every installation has, and the extra of `offpolicy` that brings it.
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
