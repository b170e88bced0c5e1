"""Measure how well the bounds of `improve` hold, on problems whose values are known:

    python tools/measure_promise.py [--logs 200] [--out docs/results/improvement]

For every problem, size and log, the candidates are scored by rule (`difference`, the paired gain, or `value`, the
paper's) and by bound. `promise.json` has how often the bounds of all candidates held at once, beside the promise by
Bonferroni, and how often a candidate was recommended. It also has how often a candidate worse than π0 was recommended:
when all candidates were offered, and when only the worse ones were, with the verdict that `improve` asks for and
without it. `README.md` shows these numbers.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import offpolicy as op
import polars as pl
from improvement_problems import Problem, problems
from offpolicy.drivers.improvement import at_least
from offpolicy.drivers.score import LowerBound
from promise_page import page

SIZES = (100, 500, 2000)
CAUTIONS = (2.0, 3.0)
ESTIMATORS = ("dr", "step-is")
#: The level at which all bounds of `betting` hold at once.
LEVEL = 0.95
#: The tolerance for a bound that a model makes exact, where rounding decides on which side of the truth it is.
ROUNDING = 1e-9
SHARES = ("held", "recommended", "worse", "worse_of_worse", "worse_of_worse_any_verdict")


def scored(problem: Problem, n: int, seed: int) -> Iterator[tuple[tuple[str, str, str], float, dict, float]]:
    """Yield for each rule, estimator and bound the promise, the candidates' scores and verdicts, and π0's mark."""
    log = problem.domain.simulate(problem.domain.behavior, n, seed)
    settings = {"generator": problem.candidates, "threads": 1}
    count = len(problem.candidates)
    for estimator in ESTIMATORS:
        best = op.improve(log, problem.domain, estimator=estimator, caution=0.0, **settings)
        for caution in CAUTIONS:
            promised = LowerBound.chosen(caution).corrected(count)
            for rule, value, error, mark in (
                ("difference", "gain", "gain_error", 0.0),
                ("value", "value", "std_error", best.behavior.value),
            ):
                rows = best.candidates.filter(pl.col("score").is_not_null(), pl.col(error) > 0)
                found = {
                    row["candidate"]: (row[value] - caution * row[error], row["verdict"])
                    for row in rows.iter_rows(named=True)
                }
                yield (rule, estimator, f"C={caution:g}"), promised, found, mark
    level = 1 - (1 - LEVEL) / count
    best = op.improve(log, problem.domain, estimator="step-is", interval="betting", confidence=level, **settings)
    found = {
        name: (score, verdict)
        for name, score, verdict in best.candidates.select("candidate", "score", "verdict").rows()
    }
    yield ("difference", "step-is", "betting"), LEVEL, found, 0.0


def measured(problem: Problem, n: int, logs: int, number: int) -> Iterator[dict]:
    """Yield one row per rule, estimator and bound."""
    counts: dict[tuple[str, str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    levels = {}
    bad = {name for name, value in problem.values.items() if value < problem.behavior}
    for run in range(logs):
        for key, promised, found, mark in scored(problem, n, 10_000 * number + run):
            levels[key], seen = promised, counts[key]
            off = problem.behavior if key[0] == "difference" else 0.0
            seen["held"] += all(score <= problem.values[name] - off + ROUNDING for name, (score, _) in found.items())
            every = {name: score for name, (score, _) in found.items()}
            usable = {name: every[name] for name, (_, verdict) in found.items() if verdict in at_least("fragile")}
            winner = recommended(usable, mark)
            seen["recommended"] += winner is not None
            seen["worse"] += winner in bad
            for scores, what in ((usable, "worse_of_worse"), (every, "worse_of_worse_any_verdict")):
                seen[what] += recommended({name: scores[name] for name in scores if name in bad}, mark) is not None
    for (rule, estimator, bound), seen in counts.items():
        about = {"problem": problem.name, "n": n, "rule": rule, "estimator": estimator, "bound": bound}
        shares = {name: seen[name] / logs for name in SHARES}
        yield about | {"promised": round(levels[rule, estimator, bound], 4)} | shares


def recommended(scores: dict[str, float], mark: float) -> str | None:
    """Return the candidate with the highest score, if that is above the mark of π0."""
    winner = max(scores, key=scores.__getitem__, default=None)
    return winner if winner is not None and scores[winner] > mark else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=200, help="logs of each problem and size")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "results" / "improvement")
    options = parser.parse_args()
    rows, chosen = [], problems()
    for number, (problem, n) in enumerate((problem, n) for problem in chosen for n in SIZES):
        rows += measured(problem, n, options.logs, number)
        print(problem.name, n, flush=True)
    about = [
        {"problem": problem.name, "behavior": round(problem.behavior, 4)}
        | {"gains": {name: round(value - problem.behavior, 4) for name, value in problem.values.items()}}
        for problem in chosen
    ]
    document = {"logs": options.logs, "problems": about, "rows": rows}
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "promise.json").write_text(json.dumps(document, indent=1) + "\n")
    (options.out / "README.md").write_text(page(document))


if __name__ == "__main__":
    main()
