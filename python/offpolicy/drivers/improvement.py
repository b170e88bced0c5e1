"""The result of a safe improvement: the winner, its bound, the other candidates, and how far to trust it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Any

import polars as pl

from offpolicy._util import plotting
from offpolicy._util.files import write_json
from offpolicy._util.optional import imported
from offpolicy._util.printing import readable, whole_tables
from offpolicy._util.visible import visible
from offpolicy.drivers.score import LowerBound
from offpolicy.errors.kinds.of_arguments import unknown_ending
from offpolicy.evaluation.plan import BEHAVIOR
from offpolicy.evaluation.verdict import LEVELS, Verdict
from offpolicy.intervals import PROMISES
from offpolicy.protocols import Policy

#: The files that `save` writes into a folder.
DOCUMENT, FIGURE = "improvement.json", "improvement.svg"

SCHEMA = {
    "candidate": pl.String,
    "train_fraction": pl.Float64,
    "episodes": pl.Int64,
    "value": pl.Float64,
    "std_error": pl.Float64,
    "gain": pl.Float64,
    "gain_error": pl.Float64,
    "score": pl.Float64,
    "rank": pl.Int64,
    "ess": pl.Float64,
    "verdict": pl.String,
    "reason": pl.String,
}

#: Measurements of docs/results/improvement for bounds of the normal law with C = 3, by `against`: how often all bounds
#: held, at worst and in the median over problems and sizes, and how often a worse policy was recommended at worst.
MEASURED = {"difference": (0.74, 0.99, 0.0), "value": (0.94, 0.9975, 0.435)}


@dataclass(frozen=True)
class BehaviorValue:
    """What the behaviour policy earned in the whole log, with its standard error and its own lower bound."""

    value: float
    std_error: float | None
    bound: float | None
    episodes: int


@dataclass(frozen=True)
class Improvement:
    """The recommendation of `op.improve`: which policy should act from now on.

    `winner` is the name of a candidate, or "behavior" if the behaviour policy stays. `policy` is the policy itself; it
    is None if the behaviour policy stays and the domain has no `behavior`.

    `candidates` has one row per candidate: the share of the episodes that it and its Q̂ have seen, the number of
    episodes that it was evaluated on, its value and its gain over the returns of these episodes, both with standard
    errors, the `score` that decides, its rank by score, and the level of its verdict. `reason` says why there is no
    score, or that the verdict is worse than required of a winner.

    `verdict` is that of the winner. `barred` is the verdict of the candidate with the highest score if that verdict
    alone keeps it from being the winner.

    `against` is "difference" if a score bounds the gain and must be above 0, and "value" if it bounds the value and
    must be above `behavior.value`, as in the paper.

    >>> import offpolicy as op
    >>> from offpolicy.testing import Walk
    >>> walk = Walk()
    >>> log = walk.simulate(walk.behavior, 500, seed=1)
    >>> half = op.policies.Mixture(walk.policies["eager"], walk.behavior, alpha=0.5)
    >>> best = op.improve(log, walk, generator={"half": half}, estimator="step-is", caution=2.0)
    >>> best.winner, best.number_of_candidates, best.candidates["score"].item() > 0
    ('half', 1, True)
    """

    winner: str
    policy: Policy | None
    candidates: pl.DataFrame
    behavior: BehaviorValue
    estimator: str
    bound: LowerBound
    against: str
    require: str
    kind: str
    verdict: Verdict | None
    barred: Verdict | None
    notes: list[str]
    settings: dict[str, Any]
    sources: list[dict[str, Any]]
    version: str

    @property
    def caution(self) -> float | None:
        """C of V − Cσ, or None if the score is the lower end of an interval."""
        return self.bound.caution

    @property
    def confidence(self) -> float:
        """The probability that the bound of one candidate, chosen beforehand, holds: Φ(C), or the requested level.

        If `kind` is not "finite-sample", this is true only in the limit of many episodes.
        """
        return self.bound.confidence

    @property
    def number_of_candidates(self) -> int:
        """The number m of candidates, including those without a score."""
        return self.candidates.height

    @property
    def corrected_confidence(self) -> float:
        """The least probability that the bounds of all candidates hold at once, if each holds with `confidence`.

        With `against="value"` this covers the bounds alone: the value of the behaviour policy, with which they are
        compared, is an estimate too.
        """
        return self.bound.corrected(self.number_of_candidates)

    @cached_property
    def highest(self) -> dict[str, Any] | None:
        """The row of the candidate with the highest score, whether it is recommended or not."""
        first = self.candidates.filter(pl.col("rank") == 1)
        return first.row(0, named=True) if first.height else None

    @property
    def threshold(self) -> float:
        """The number that a score must exceed."""
        return 0.0 if self.against == "difference" else self.behavior.value

    @property
    def conclusion(self) -> str:
        """The recommendation in a sentence."""
        value, best = f"{self.behavior.value:.4g}", self.highest
        if best is None:
            return f"keep the behaviour policy, whose value is {value}: no candidate has a bound"
        differs = self.against == "difference"
        if self.winner == BEHAVIOR:
            if self.barred is not None:
                barred = f"the highest bound is that of {self._named(best)}, but its verdict is {self.barred}"
                return f"keep the behaviour policy: {barred}"
            enough = "bound of a gain is above 0" if differs else f"bound is above its value, {value}"
            return f"keep the behaviour policy: no {enough}; the highest is {self._named(best)}"
        row = self.candidates.row(by_predicate=pl.col("candidate") == self.winner, named=True)
        least = "0" if differs else f"{value}, the value of the behaviour policy"
        return f"take {self._named(row)}, which is above {least}"

    def _named(self, row: dict[str, Any]) -> str:
        return f"{row['candidate']!r} with {self.bound} = {row['score']:.4g}"

    @property
    def promise(self) -> str:
        """A text that says how often the bounds hold, and what they leave out."""
        certain = self.kind in PROMISES
        one = f"a bound alone holds with confidence {self.confidence:.4g}"
        one += f" ({self.kind})" if certain else f" in the limit of many episodes ({self.kind})"
        said = [one] if self.number_of_candidates == 1 else [f"{one}, {self._of_all(certain)}"]
        least, median, worse = MEASURED[self.against]
        if not certain:
            said.append(
                f"measured with 3σ (docs/results/improvement), all held at once in {least:g} of logs at worst and "
                f"{median:g} in the median"
            )
        if self.against == "value":
            error = "of unknown size" if self.behavior.std_error is None else f"± {self.behavior.std_error:.2g}"
            said.append(
                f"no bound covers the error of the behaviour policy's own value, {self.behavior.value:.4g} {error}, "
                f"which they are compared with: a worse policy was recommended in {worse:g} of measured logs at worst"
            )
        return "; ".join(said)

    def _of_all(self, certain: bool) -> str:
        every = f"those of all {self.number_of_candidates} candidates at once"
        if self.corrected_confidence > 0:
            return f"{every} with {self.corrected_confidence:.4g}" + (" or more" if certain else "")
        needed = 1 - 0.05 / self.number_of_candidates
        asked = f"confidence={needed:.5g}" if self.caution is None else f"caution={NormalDist().inv_cdf(needed):.3g}"
        return f"{every} without any guarantee: that takes {asked} for 0.95"

    def __str__(self) -> str:
        """Return the recommendation, how far it can be trusted, and the candidates, best first."""
        said = [self.conclusion, self.promise, *([str(self.verdict)] if self.verdict else [])]
        shown = self.candidates.sort("rank", nulls_last=True, maintain_order=True)
        with whole_tables():
            return "\n".join([*map(visible, said), readable(shown), *map(visible, self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """Return the whole result with its provenance in a form ready for JSON; policies appear by name.

        >>> import offpolicy as op
        >>> from offpolicy.testing import Walk
        >>> log = Walk().simulate(Walk().behavior, 50, seed=1)
        >>> op.improve(log, Walk(), generator=Walk().policies, estimator="step-is").to_dict()["caution"]
        1.0
        """
        return {
            "version": self.version,
            "sources": self.sources,
            "settings": self.settings,
            "winner": self.winner,
            "conclusion": self.conclusion,
            "estimator": self.estimator,
            "bound": {"name": str(self.bound), "kind": self.kind},
            "against": self.against,
            "require": self.require,
            "caution": self.caution,
            "confidence": self.confidence,
            "number_of_candidates": self.number_of_candidates,
            "corrected_confidence": self.corrected_confidence,
            "behavior": asdict(self.behavior),
            "verdict": None
            if self.verdict is None
            else {"level": self.verdict.level, "rule": self.verdict.rule, "advice": self.verdict.advice},
            "candidates": self.candidates.to_dicts(),
            "notes": self.notes,
        }

    def plot(self) -> Any:
        """Return an Altair chart of every candidate's score and gain, or value, beside the behaviour policy."""
        imported("altair", extra="plot", to="draw the candidates")
        from offpolicy.drivers.improvement_picture import Choice, picture

        choice = Choice(
            candidates=self.candidates,
            winner=self.winner,
            estimator=self.estimator,
            bound=str(self.bound),
            against=self.against,
            require=self.require,
            enough=at_least(self.require),
            threshold=self.threshold,
            highest=self.highest,
            behavior_value=self.behavior.value,
            behavior_bound=self.behavior.bound,
        )
        return picture(choice)

    def save(self, path: str | Path) -> list[Path]:
        """Write the document (`.json`), the figure (`.svg`, `.png` or `.html`), or both into a folder.

        >>> import offpolicy as op
        >>> from offpolicy.testing import Walk
        >>> log = Walk().simulate(Walk().behavior, 50, seed=1)
        >>> best = op.improve(log, Walk(), generator=Walk().policies, estimator="step-is")
        >>> [str(file) for file in best.save("result.json")]
        ['result.json']
        """
        files = files_of(Path(path))
        if files[0] != Path(path):
            Path(path).mkdir(parents=True, exist_ok=True)
        for file in files:
            if file.suffix == ".json":
                write_json(file, self.to_dict())
            else:
                plotting.save(self.plot(), file)
        return files


def at_least(level: str) -> tuple[str, ...]:
    """Return the levels of verdicts that are not worse than this one.

    >>> at_least("fragile")
    ('reliable', 'fragile')
    """
    return LEVELS[: LEVELS.index(level) + 1]


def files_of(path: Path) -> list[Path]:
    """Return the files that `save` writes for a path, and refuse a format that cannot be written or drawn.

    >>> [file.name for file in files_of(Path("out"))], [file.name for file in files_of(Path("best.json"))]
    (['improvement.json', 'improvement.svg'], ['best.json'])
    """
    files = [path / DOCUMENT, path / FIGURE] if path.is_dir() or not path.suffix else [path]
    for file in files:
        if file.suffix not in (".json", ".svg", ".png", ".html"):
            raise unknown_ending(
                what="a result", forms="a folder, or a file .json, .svg, .png or .html", found=repr(str(path))
            )
        if file.suffix != ".json":
            plotting.picture_format(file)
    return files
