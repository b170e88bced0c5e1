"""Experiments of plugins by name: many runs, then the figure, the numbers and the claims in a folder.

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from offpolicy import _core
from offpolicy._util import plotting, words
from offpolicy._util.files import write_json
from offpolicy._util.optional import imported
from offpolicy._util.scalars import MOST_THREADS, size, whole
from offpolicy.errors import PluginError
from offpolicy.errors.hints import hint
from offpolicy.errors.kinds.of_arguments import unknown_name
from offpolicy.errors.kinds.of_files import damaged_runs
from offpolicy.errors.kinds.of_plugins import no_experiment
from offpolicy.experiments.claims import Claim
from offpolicy.experiments.runs import already, complete
from offpolicy.experiments.runs_file import FILE
from offpolicy.extensions import plugins

#: Of the JSON of results, which have thousands of lines.
INDENT = 1
#: The hook that brings experiments, and the package that brings those of the paper.
HOOK, PAPER = "offpolicy_experiments", "offpolicy-paper"


@dataclass(frozen=True)
class Result:
    """What a reproduction found, and where it was written."""

    name: str
    source: str
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
            "paper": self.source,
            "version": _core.__version__,
            "settings": self.settings,
            "seed": self.seed,
            "runs": self.runs,
            "claims": [claim.to_dict() for claim in self.claims],
            "numbers": self.numbers.to_dicts(),
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
    """Repeat an experiment and write what was found to the folder `out`.

    `runs` are the experiment's own unless given. `quick` does a few, and of an experiment that takes long to make a
    rougher one: its settings say so, and neither goes on with the runs of the other. With `resume` a folder that has
    runs is gone on with. `options` are those of the experiment's domain, such as `{"substeps": 1}` for Mountain Car.
    """
    folder = Path(out)
    check(name, folder, resume)
    study = plugins.study(name)
    count = runs if runs is not None else study.quick if quick else study.runs
    count, seed = whole("runs", count, least=1), whole("seed", seed, least=0)
    workers = size("workers", workers, MOST_THREADS)
    make = study.make_quick if quick and study.make_quick else study.make
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
    numbers, claims = study.read(experiment, done)
    result = Result(name, study.source, experiment.settings(), seed, count, numbers, claims, folder)
    write_json(folder / "result.json", result.to_dict(), INDENT)
    redraw(folder)
    return result


def redraw(folder: str | Path) -> None:
    """Draw the figure of a folder again, from its `result.json`; nothing is run."""
    file = Path(folder) / "result.json"
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        name, settings = found["experiment"], found["settings"]
        title = f"{name}: {found['runs']} runs" + (", quick" if "quick" in settings else "")
        numbers = pl.DataFrame(found["numbers"], infer_schema_length=None)
        chart = plugins.study(name).draw(numbers, title, settings["domain"])
    except PluginError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, pl.exceptions.PolarsError) as error:
        raise damaged_runs(file=str(file), why=error, go_on=words.WRITTEN_ANEW) from None
    for kind in ("svg", "png"):
        plotting.save(chart, Path(folder) / f"figure.{kind}")


def names() -> list[str]:
    """All experiments that are installed; to have none is an error that says what to install."""
    found = plugins.registry().names(HOOK)
    if not found:
        raise no_experiment(hint=_hint())
    return found


def check(name: str, folder: Path, resume: bool) -> None:
    """Refuse what could not be done, before any run."""
    known = names()
    if name not in known:
        raise unknown_name(lack="there is no experiment", name=repr(name), hint=f"{hint(name, known)}{_hint()}")
    study = plugins.study(name)
    plotting.picture_format(Path("figure.svg"))
    plugins.registry().find("offpolicy_domains", study.domain)
    if study.needs is not None:
        imported(*study.needs, to=f"reproduce {name}")
    if (folder / FILE).exists() and not resume:
        raise already(folder / FILE)


def _hint() -> str:
    """Say how to get the experiments of the paper: install them, or mend them."""
    for plugin in plugins.registry().plugins:
        if plugin.package == PAPER:
            return f"; plugin {plugin.name!r} is broken ({plugin.error})" if plugin.error else ""
    return f"; those of the paper come with {PAPER}: pip install {PAPER}"


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
