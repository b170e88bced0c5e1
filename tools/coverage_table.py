"""Measure how often every interval misses the truth on small problems, exactly and in 10,000 random samples.

    python tools/coverage_table.py [--runs 10000] [--out docs/results/coverage]

The exact part takes all samples of a size with their probabilities, in rational arithmetic, and counts misses above and
below separately. Each cell (problem, estimator, way, size) is kept in `cells.jsonl` as soon as it is known. Methods
that a cell already has are not measured again. `README.md` shows all cells.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from offpolicy import intervals
from offpolicy.intervals.hcope import PRE_SAMPLE
from offpolicy.intervals.sketch import rounds_of
from small_problems import MODELLED, PROBLEMS, Problem, places_by_round

LEVELS = (0.5, 0.8, 0.95)
EXACT_SIZES, SIZES = (2, 3, 5, 8, 12), (10, 20, 50, 100, 200)
#: Methods that depend on the rounds of trajectories, for which there are many more different samples.
BY_ROUNDS, ROUND_SIZES, PART_SIZES = ("betting", "hcope"), (1, 2, 3, 4, 6), (4, 6, 8, 10, 12)
#: Kinds of intervals with a promise for finite samples.
PROMISES = ("finite-sample", "anytime")
#: The number of random samples for betting, of which hardly two are alike.
BETTING_RUNS = 300
REPLICATES = {"bootstrap": 199, "bootstrap-bca": 199}
#: The methods for other estimators than `step-is`: all that the weighted ones have.
OF_RATIOS = ("normal", "t", "t-skew", "bootstrap", "bootstrap-bca")


def tally(problem: Problem, samples: Iterable[tuple], methods, ids=None, estimator="step-is") -> dict:
    """Return by method and level the probabilities of a miss above, of a miss below, and of no interval."""
    sums = {f"{method} {level}": [Fraction(0)] * 3 for method in methods for level in LEVELS}
    for chance, chosen in samples:
        sample = problem.sample(chosen, ids)
        for method in methods:
            options = {"replicates": REPLICATES[method]} if method in REPLICATES else {}
            for level in LEVELS:
                found = sample.interval(method, level, estimator=estimator, **options)
                above = found.low is not None and found.low > problem.value
                below = found.high is not None and found.high < problem.value
                for k, so in enumerate((above, below, found.low is None and found.high is None)):
                    if so:
                        sums[f"{method} {level}"][k] += chance
    return {key: [float(x) for x in each] for key, each in sums.items()}


def missed(problem: Problem, samples: Iterable[tuple], methods, ids=None) -> dict:
    """Return the probabilities of misses above and below for `step-is`."""
    return {key: each[:2] for key, each in tally(problem, samples, methods, ids).items()}


def by_multiset() -> list[str]:
    return [method for method in intervals.METHODS if method not in BY_ROUNDS]


def exact(problem: Problem, n: int, methods: Sequence[str]) -> dict:
    """Measure all samples of n trajectories, regardless of their order."""
    return {"misses": missed(problem, problem.multisets(n), methods)}


def exact_by_rounds(problem: Problem, n: int, methods: Sequence[str]) -> dict:
    """Measure all samples for betting, where the round of a trajectory matters."""
    return {"misses": missed(problem, problem.by_parts(places_by_round(range(n))), methods)}


def exact_by_parts(problem: Problem, n: int, methods: Sequence[str]) -> dict:
    """Measure all samples for hcope, with ids that put a third of the trajectories into its pre-sample."""
    first, k = rounds_of(range(1000)) < PRE_SAMPLE, max(2, n // 3)
    ids = [*np.flatnonzero(first)[:k].tolist(), *np.flatnonzero(~first)[: n - k].tolist()]
    return {"misses": missed(problem, problem.by_parts([range(k), range(k, n)]), methods, ids=ids)}


def exact_of(estimator: str, problem: Problem, n: int, methods: Sequence[str] = OF_RATIOS) -> dict:
    """Measure the misses of another estimator in all samples, and the share of samples without an interval."""
    found = tally(problem, problem.multisets(n), methods, estimator=estimator)
    return {
        "misses": {key: each[:2] for key, each in found.items()},
        "withheld": {key: each[2] for key, each in found.items()},
    }


def others() -> Iterator[tuple[str, Problem, str]]:
    """Yield other estimators with the problems that distinguish them: with one step, `step-wis` equals `wis`."""
    for name, problem in PROBLEMS.items():
        yield name, problem, "wis"
        if problem.horizon > 1:
            yield name, problem, "step-wis"
    for estimator in ("dr", "wdr"):
        yield "modelled", MODELLED, estimator


def has_none(method: str, n: int) -> bool:
    """Tell whether no random sample has an interval, because hcope needs two trajectories in its pre-sample."""
    return method == "hcope" and (rounds_of(range(n)) < PRE_SAMPLE).sum() < 2


def random(runs: int, problem: Problem, n: int, methods: Sequence[str]) -> dict:
    """Measure random samples, computing those that are alike to a method only once."""
    law = [float(p) for p, _ in problem.law]
    drawn = np.random.default_rng([n, len(law)]).choice(len(law), p=law, size=(runs, n))
    rounds = rounds_of(range(n))
    alike = {"betting": within(drawn[:BETTING_RUNS], rounds), "hcope": within(drawn, rounds >= PRE_SAMPLE)}
    found = missed(problem, counted(np.sort(drawn, axis=1)), [name for name in methods if name not in alike])
    for name in alike.keys() & set(methods):
        found |= missed(problem, counted(alike[name]), [name])
    return {"misses": found}


def within(drawn: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Return the samples sorted within each part of their places."""
    order = np.lexsort((drawn, np.broadcast_to(parts, drawn.shape)), axis=1)
    alike = np.empty_like(drawn)
    alike[:, np.argsort(parts, kind="stable")] = np.take_along_axis(drawn, order, axis=1)
    return alike


def counted(samples: np.ndarray) -> Iterator[tuple[Fraction, np.ndarray]]:
    """Yield the different samples with their shares of all."""
    different, times = np.unique(samples, axis=0, return_counts=True)
    for chosen, count in zip(different, times.tolist(), strict=True):
        yield Fraction(count, len(samples)), chosen


class Cell(NamedTuple):
    """One measurement: a problem, a way, and a size of the samples."""

    row: dict
    problem: Problem
    methods: Sequence[str]
    measure: Callable[[Problem, int, Sequence[str]], dict]

    def found(self, methods: Sequence[str] | None = None) -> dict:
        """Return the misses of some methods, or of all."""
        return self.measure(self.problem, self.row["n"], self.methods if methods is None else methods)

    def lacking(self, known: dict) -> list[str]:
        """Return the methods that a known row does not have yet."""
        have = known.get("misses", {})
        return [method for method in self.methods if any(f"{method} {level}" not in have for level in LEVELS)]


def cells(runs: int) -> Iterator[Cell]:
    """Yield all measurements."""
    ways = (
        ("multisets", EXACT_SIZES, by_multiset(), exact),
        ("rounds", ROUND_SIZES, ["betting"], exact_by_rounds),
        ("parts", PART_SIZES, ["hcope"], exact_by_parts),
    )
    for name, problem in PROBLEMS.items():
        for way, sizes, methods, measure in ways:
            for n in sizes:
                yield Cell({"problem": name, "way": way, "n": n}, problem, methods, measure)
    for name, problem, estimator in others():
        for n in EXACT_SIZES:
            row = {"problem": name, "estimator": estimator, "way": "multisets", "n": n}
            yield Cell(row, problem, OF_RATIOS, partial(exact_of, estimator))
    for n in SIZES:
        for name, problem in PROBLEMS.items():
            row = {"problem": name, "way": "random", "n": n}
            yield Cell(row, problem, [*intervals.METHODS], partial(random, runs))


def key(row: dict) -> tuple:
    """Return the values that identify a cell."""
    return row["problem"], row.get("estimator", "step-is"), row["way"], row["n"]


PAGE = """# How often intervals miss the truth

Made by `python tools/coverage_table.py`. Six problems with a few possible trajectories each
([small_problems.py](../../../tests/support/small_problems.py)), `step-is` and, in the last tables, other estimators;
two-sided intervals (`hcope`: from below). [cells.jsonl](cells.jsonl) has the misses above and below apart.

Coverage in percent, in parentheses where it is below the level; an interval that is withheld in some samples, as all
but those for finite samples are where no two trajectories differ, misses nothing there. Of exact samples `betting` has
other sizes, and `hcope` others, with a third in its pre-sample.
`bernstein` and `hcope` say nothing in most of these small samples: their bounds are no better than the least and the
largest possible return, and 100.0 says little of them.
[test_coverage.py](../../../tests/unit/intervals/test_coverage.py) has exact samples of 210 and 400
trajectories, in which most of their bounds say something, and hold.
Kinds:
{kinds}.

{bad}

{tables}

## Other estimators

{others}
"""
WAYS = {
    "exact": "All samples of n trajectories, with their probabilities: no chance is left",
    "random": f"10,000 random samples of n = {', '.join(map(str, SIZES))}: an error of 0.5 at 50%, of 0.2 at 95%; "
    f"of `betting` {BETTING_RUNS:,}, with errors of 2.9 and 1.3",
}
OTHERS = """All samples again, for ratios of sums and for estimators with a model. Where there is one step `step-wis` is
`wis`; `modelled` is `survival` with Q̂ and V̂ that are partly wrong. After the coverage stand the misses above (↑: the
low end is above the truth) and below (↓). A star: some samples have no interval and miss nothing, because no trajectory
has weight, too many resamples have none, or no two trajectories differ. A dash: no sample has one."""


def page(rows: list[dict]) -> str:
    """Return the page with all cells."""
    kinds: dict[str, list[str]] = {}
    for name, method in intervals.METHODS.items():
        kinds.setdefault(method.kind, []).append(f"`{name}`")
    merged: dict[tuple, dict] = {}
    for row in rows:
        if "estimator" in row:
            continue
        way = "random" if row["way"] == "random" else "exact"
        merged.setdefault((way, row["problem"], row["n"]), {}).update(row["misses"])
    tables, count, promised = [], 0, [name for name, m in intervals.METHODS.items() if m.kind in PROMISES]
    for way, about in WAYS.items():
        for level in LEVELS:
            lines = [["problem", "n", *intervals.METHODS], ["---"] * (2 + len(intervals.METHODS))]
            for (cell_way, problem, n), misses in sorted(merged.items(), key=lambda item: (item[0][1], item[0][2])):
                if cell_way == way:
                    known = {m: misses.get(f"{m} {level}") for m in intervals.METHODS}
                    none = {m for m in known if known[m] is None or (way == "random" and has_none(m, n))}
                    covers = [None if m in none else 1 - sum(known[m]) for m in intervals.METHODS]
                    count += sum(c is not None and c < level for c in covers)
                    lines.append([problem, str(n), *(shown(c, level) for c in covers)])
            table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
            tables.append(f"## {100 * level:g}%, {way}\n\n{about}.\n\n{table}")
    listed = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds.items())
    short = {name for row in rows for name in worse(row) if name in promised}
    verdict = (
        f"Of those that promise something for finite samples ({', '.join(promised)}), "
        + (f"{', '.join(sorted(short))} fell short" if short else "none falls short anywhere")
        + f"; {count} cells of the others with `step-is` are below their level."
    )
    return PAGE.format(kinds=listed, bad=verdict, tables="\n\n".join(tables), others=others_page(rows))


def others_page(rows: list[dict]) -> str:
    """Return the tables of other estimators, with misses above and below shown separately."""
    tables = [OTHERS]
    for level in LEVELS:
        lines = [["problem", "estimator", "n", *OF_RATIOS], ["---"] * (3 + len(OF_RATIOS))]
        for row in sorted((row for row in rows if "estimator" in row), key=key):
            asked = [f"{method} {level}" for method in OF_RATIOS]
            found = [apart(row["misses"][each], row["withheld"][each], level) for each in asked]
            lines.append([row["problem"], row["estimator"], str(row["n"]), *found])
        tables.append(f"### {100 * level:g}%\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines))
    return "\n\n".join(tables)


def apart(misses: list[float], withheld: float, level: float) -> str:
    """Format a cell with the misses above and below."""
    if withheld == 1:
        return "–"
    above, below = (f"{100 * x:.1f}" for x in misses)
    return f"{shown(1 - sum(misses), level)}{'*' if withheld else ''} ↑{above} ↓{below}"


def worse(row: dict) -> Iterator[str]:
    """Yield the methods that miss the truth more often than they say, on either side and beyond chance."""
    for key, misses in row["misses"].items():
        method, level = key.split()
        allowed = (1 - float(level)) / (1 if method == "hcope" else 2)
        runs = BETTING_RUNS if method == "betting" else 10_000
        chance = 4 * (allowed / runs) ** 0.5 if row["way"] == "random" else 1e-12
        if max(misses) > allowed + chance:
            yield method


def shown(coverage: float | None, level: float) -> str:
    """Format a cell with the coverage, in parentheses where it is below the level."""
    if coverage is None:
        return "–"
    return f"{100 * coverage:.1f}" if coverage >= level else f"({100 * coverage:.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "results" / "coverage")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    kept = options.out / "cells.jsonl"
    done = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    known = {key(row): row for row in done}
    for cell in cells(options.runs):
        row = known.setdefault(key(cell.row), cell.row)
        if not (lacking := cell.lacking(row)):
            continue
        for part, found in cell.found(lacking).items():
            row[part] = row.get(part, {}) | found
        kept.write_text("".join(json.dumps(each) + "\n" for each in known.values() if "misses" in each))
        print(*key(row), flush=True)
    (options.out / "README.md").write_text(page([*known.values()]))


if __name__ == "__main__":
    main()
