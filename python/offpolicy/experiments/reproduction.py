"""Reproduction of plugins' experiments: many runs, then the figure, the numbers and the claims in a folder.

    runs.jsonl    settings and seed, then one line per run
    result.json   settings, the numbers with their Monte-Carlo errors, the claims
    figure.svg, figure.png
    time.json     seconds and workers of each call that added runs

All files but the last depend only on the settings, the seed and the number of runs.
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

#: The indentation of results in JSON, which have thousands of lines.
INDENT = 1
#: The hook for experiments, and the package with the experiments of the paper.
HOOK, PAPER = "offpolicy_experiments", "offpolicy-paper"


@dataclass(frozen=True)
class Result:
    """The result of a reproduction, and the folder to which it was written."""

    name: str
    source: str
    settings: dict[str, Any]
    seed: int
    runs: int
    numbers: pl.DataFrame
    claims: list[Claim]
    folder: Path

    def to_dict(self) -> dict[str, Any]:
        """Return the result ready for JSON."""
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
    """Repeat an experiment and write its result to the folder `out`.

    `runs` is by default the experiment's own number. `quick` makes fewer runs, and a less precise experiment if the
    usual one takes long to make; the settings of such an experiment differ, so that neither can resume the runs of the
    other. `resume` continues a folder that has runs. `options` are those of the experiment's domain, such as
    `{"substeps": 1}` for Mountain Car.
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
    """Draw the figure of a folder again from its `result.json`, without any runs."""
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
    """Return the names of all installed experiments; raise an error that says what to install if there are none."""
    found = plugins.registry().names(HOOK)
    if not found:
        raise no_experiment(hint=_hint())
    return found


def check(name: str, folder: Path, resume: bool) -> None:
    """Raise an error before any run if the reproduction could not succeed."""
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
    """Say how to get the experiments of the paper, or why their plugin is broken."""
    for plugin in plugins.registry().plugins:
        if plugin.package == PAPER:
            return f"; plugin {plugin.name!r} is broken ({plugin.error})" if plugin.error else ""
    return f"; those of the paper come with {PAPER}: pip install {PAPER}"


class _Clock:
    """A clock that writes how long the runs of each call took, also if the call was interrupted."""

    def __init__(self, file: Path, workers: int, progress: Callable[[int, int], None] | None) -> None:
        self.file, self.workers, self.progress = file, workers, progress
        self.began, self.added = time.monotonic(), 0
        self.found: int | None = None

    def advance(self, done: int, total: int) -> None:
        """Note the number of finished runs; the first call gives the runs that were there before."""
        if self.found is None:
            self.found = done
        self.added = done - self.found
        if self.progress:
            self.progress(done, total)

    def write(self) -> None:
        """Write the time of this call, if it added runs."""
        if not self.added:
            return
        taken = {"runs": self.added, "seconds": round(time.monotonic() - self.began, 1), "workers": self.workers}
        write_json(self.file, [*self._earlier(), taken], INDENT)

    def _earlier(self) -> list[Any]:
        """Return the times of earlier calls; a damaged file is ignored, since it has only times."""
        try:
            noted = json.loads(self.file.read_bytes())
        except (FileNotFoundError, ValueError):
            return []
        return noted if isinstance(noted, list) else []
