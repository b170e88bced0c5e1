"""The paper's experiments by name: many runs, then the figure, the numbers and the claims in a folder.

    runs.jsonl    settings and seed, then a line a run
    result.json   settings, the numbers with their Monte-Carlo errors, the claims
    figure.svg, figure.png
    time.json     seconds and workers of each call that added runs

All but the last depend on the settings, the seed and the number of runs alone.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from offpolicy import _core
from offpolicy._util import plotting
from offpolicy._util.files import write_json
from offpolicy._util.optional import imported
from offpolicy._util.scalars import MOST_THREADS, size, whole
from offpolicy.errors import words
from offpolicy.errors.hints import hint
from offpolicy.errors.kinds.arguments import unknown_name
from offpolicy.errors.kinds.files import damaged_runs
from offpolicy.experiments import figures, kdd98, mountain_car, safe_improvement, sailing
from offpolicy.experiments.claims import Claim
from offpolicy.experiments.errors import Errors
from offpolicy.experiments.runs import Experiment, already, complete
from offpolicy.experiments.runs_file import FILE, Run
from offpolicy.extensions import plugins

#: Of the JSON of results, which have thousands of lines.
INDENT = 1
#: Numbers and claims of an experiment's runs.
Reader = Callable[[Any, Sequence[Run]], tuple[pl.DataFrame, list[Claim]]]


@dataclass(frozen=True)
class Paper:
    """An experiment of the paper: how it is made, how many runs it has, what is read from them.

    `quick` runs are done where a few will do, of the experiment that `make_quick` makes if making it takes long.
    `needs` is a module that not every installation has, and the extra that brings it.
    """

    figure: str
    domain: str
    runs: int
    quick: int
    make: Callable[..., Experiment]
    read: Reader
    draw: Callable[[pl.DataFrame, str, str], Any]
    make_quick: Callable[..., Experiment] | None = None
    needs: tuple[str, str] | None = None


@dataclass(frozen=True)
class Result:
    """What a reproduction found, and where it was written."""

    name: str
    settings: dict[str, Any]
    seed: int
    runs: int
    numbers: pl.DataFrame
    claims: list[Claim]
    folder: Path

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "experiment": self.name,
            "paper": f"Jiang & Li (2016), {PAPER[self.name].figure}",
            "version": _core.__version__,
            "settings": self.settings,
            "seed": self.seed,
            "runs": self.runs,
            "claims": [claim.to_dict() for claim in self.claims],
            "numbers": self.numbers.to_dicts(),
        }


def _splits(claims: Callable[[Errors], list[Claim]]) -> Reader:
    def read(experiment: Any, runs: Sequence[Run]) -> tuple[pl.DataFrame, list[Claim]]:
        errors = Errors(experiment, runs)
        return errors.numbers(), claims(errors)

    return read


def _gains(experiment: Any, runs: Sequence[Run]) -> tuple[pl.DataFrame, list[Claim]]:
    gains = safe_improvement.Gains(experiment, runs)
    return gains.numbers(), safe_improvement.claims(gains)


def _donations(experiment: Any, runs: Sequence[Run]) -> tuple[pl.DataFrame, list[Claim]]:
    return kdd98.numbers(experiment, runs), kdd98.claims(experiment, runs)


def _over_alpha(numbers: pl.DataFrame, title: str, subtitle: str) -> Any:
    donors = numbers["donors"][0]
    return figures.errors_over(numbers, "alpha", "α", f"{title}, {donors}", subtitle, dodged=True)


def _over_sizes(numbers: pl.DataFrame, title: str, subtitle: str) -> Any:
    return figures.errors_over(numbers, "size", "|D_test|", title, subtitle, panels="alpha")


PAPER: Mapping[str, Paper] = {
    "mountain-car": Paper(
        "Fig. 1",
        "mountain-car",
        mountain_car.RUNS,
        10,
        mountain_car.experiment,
        _splits(mountain_car.claims),
        _over_sizes,
    ),
    "sailing": Paper("Fig. 2", "sailing", sailing.RUNS, 6, sailing.experiment, _splits(sailing.claims), _over_sizes),
    "kdd98": Paper(
        "Fig. 3",
        "kdd98",
        kdd98.RUNS,
        6,
        kdd98.experiment,
        _donations,
        _over_alpha,
        kdd98.quick_experiment,
        needs=("jax", "recurrent"),
    ),
    "safe-improvement": Paper(
        "Fig. 4", "mountain-car", safe_improvement.RUNS, 6, safe_improvement.experiment, _gains, figures.gains_over_size
    ),
}


def reproduce(
    name: str,
    *,
    runs: int | None = None,
    seed: int = 0,
    out: str | Path,
    workers: int | None = None,
    resume: bool = False,
    quick: bool = False,
    options: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Repeats an experiment of the paper and writes what was found to the folder `out`.

    `runs` are the paper's unless given. `quick` does a few, and of an experiment that takes long to make a rougher one:
    its settings say so, and neither goes on with the runs of the other. With `resume` a folder that has runs is gone on
    with. `options` are those of the experiment's domain, such as `{"substeps": 1}` for Mountain Car.
    """
    folder = Path(out)
    check(name, folder, resume)
    paper = PAPER[name]
    count = runs if runs is not None else paper.quick if quick else paper.runs
    count, seed = whole("runs", count, least=1), whole("seed", seed, least=0)
    workers = size("workers", workers, MOST_THREADS)
    make = paper.make_quick if quick and paper.make_quick else paper.make
    experiment = make(**(options or {}))
    folder.mkdir(parents=True, exist_ok=True)
    workers = workers or os.cpu_count() or 1
    clock = _Clock(folder / "time.json", workers, progress)
    try:
        done = complete(
            experiment, count, seed=seed, folder=folder, workers=workers, resume=resume, progress=clock.advance
        )
    finally:
        clock.write()
    numbers, claims = paper.read(experiment, done)
    result = Result(name, experiment.settings(), seed, count, numbers, claims, folder)
    write_json(folder / "result.json", result.to_dict(), INDENT)
    redraw(folder)
    return result


def redraw(folder: str | Path) -> None:
    """Draws the figure of a folder again, from its `result.json`; nothing is run."""
    file = Path(folder) / "result.json"
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        name, settings = found["experiment"], found["settings"]
        title = f"{name}: {found['runs']} runs" + (", quick" if "quick" in settings else "")
        numbers = pl.DataFrame(found["numbers"], infer_schema_length=None)
        chart = PAPER[name].draw(numbers, title, settings["domain"])
    except (ValueError, LookupError, TypeError, AttributeError, pl.exceptions.PolarsError) as error:
        raise damaged_runs(file=str(file), why=error, go_on=words.WRITTEN_ANEW) from None
    for kind in ("svg", "png"):
        plotting.save(chart, Path(folder) / f"figure.{kind}")


def check(name: str, folder: Path, resume: bool) -> None:
    """Refuses what could not be done, before any run."""
    if name not in PAPER:
        raise unknown_name(lack="there is no experiment", name=repr(name), hint=hint(name, PAPER))
    paper = PAPER[name]
    plotting.picture_format(Path("figure.svg"))
    plugins.registry().find("offpolicy_domains", paper.domain)
    if paper.needs is not None:
        imported(*paper.needs, to=f"reproduce {name}")
    if (folder / FILE).exists() and not resume:
        raise already(folder / FILE)


class _Clock:
    """Notes how long runs took, beside those of earlier calls; an interrupted call is noted too."""

    def __init__(self, file: Path, workers: int, progress: Callable[[int, int], None] | None) -> None:
        self.file, self.workers, self.progress = file, workers, progress
        self.began, self.added = time.monotonic(), 0
        self.found: int | None = None

    def advance(self, done: int, total: int) -> None:
        """Told first how many runs are there already, then whenever one has ended."""
        if self.found is None:
            self.found = done
        self.added = done - self.found
        if self.progress:
            self.progress(done, total)

    def write(self) -> None:
        """If there was any."""
        if not self.added:
            return
        taken = {"runs": self.added, "seconds": round(time.monotonic() - self.began, 1), "workers": self.workers}
        write_json(self.file, [*self._earlier(), taken], INDENT)

    def _earlier(self) -> list[Any]:
        """What earlier calls noted; a damaged file is no reason to stop, it has only times."""
        try:
            noted = json.loads(self.file.read_bytes())
        except (FileNotFoundError, ValueError):
            return []
        return noted if isinstance(noted, list) else []
