"""Measure how often intervals cover the truth, and how the verdict judges them, on problems from easy to hopeless:

    python tools/measure_verdict.py [--runs 500] [--out docs/results/verdict]

The tool writes `table.json` with one row per problem, size and estimator. A row has the coverage of the 95% t interval,
how often each verdict was given, coverage and the mean of (estimate − truth)/error given the verdict, and the medians
of the diagnostics. The file also has the same coverage by ranges of each diagnostic, and a comparison with the former
rules. `README.md` shows all that.
"""

import argparse
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import offpolicy as op
import polars as pl
from former_verdict import former_level
from hard_problems import Setting, settings
from offpolicy.evaluation import verdict
from offpolicy.evaluation.estimators import describe, named
from offpolicy.evaluation.verdict import LEVELS
from verdict_page import page

SIZES, LARGE = (20, 100, 300, 1000, 5000), 100_000
ESTIMATORS = ("is", "step-is", "wis", "step-wis", "dr", "wdr")
#: The coverage below which intervals are poor, if by more than the standard error of the measurement.
POOR = 0.9
#: Problems with policies far from the log or weights without a variance, with and without which rules are compared.
FAR = ("graph", "sepsis", "bandit 2")
#: The limits by which `judged_good` calls a combination of problem, size and estimator good.
GOOD = {"episodes": 300, "coverage": 0.94, "missed_on_a_side": 0.04, "spread_over_error": 1.1}
#: Ranges of the diagnostics by which coverage is shown, for logs that are not misleading; `RANGES_OF_ALL` is for all.
RANGES = {
    "size": (3, 10, 30, 100, 300, 1000),
    "predicted_leaning": (0.01, 0.1, 0.25, 1, 3, 10),
    "lacking": (0.5, 0.9, 1.1, 1.2, 1.5, 2),
    "k_hat": (0.0, 0.2, 0.4, 0.5, 0.6, 0.7),
    "concentration": (0.02, 0.05, 0.08, 0.2, 0.3, 0.4),
    "leaning": (0.001, 0.005, 0.01, 0.02, 0.05, 0.1),
}
RANGES_OF_ALL = {
    "mean_errors": (1, 2, 2.5, 3, 4, 5, 10, 50),
    "log10_e_value": (0, 1, 2, 3, 5, 10),
    "control_errors": (1, 2, 3, 4, 5, 10, 50),
}
DIAGNOSTICS = (
    "ess",
    "predicted_ess",
    "predicted_leaning",
    "k_hat",
    "largest_share",
    "mean_weight",
    "log10_e_value",
)
KEYS = ("setting", "right", "n", "estimator")


def measured(number: int, setting: Setting, n: int, runs: int) -> Iterator[dict]:
    """Yield one row per run and estimator."""
    for run in range(runs):
        log = setting.draw(np.random.default_rng([number, n, run]), n)
        ev = op.evaluate(log, discount=setting.discount, threads=1)
        found = ev.diagnostics.row(0, named=True)
        about = {name: found[name] for name in DIAGNOSTICS}
        about["lacking"] = found["ess"] / found["predicted_ess"] if found["predicted_ess"] else np.inf
        about["size"] = min(found["ess"], found["predicted_ess"])
        about["mean_errors"] = mean_errors(found, n)
        moved = {row["estimator"]: row for row in ev.leverage.iter_rows(named=True)}
        for name in ESTIMATORS:
            if name in moved:
                yield {"n": n, "estimator": name} | of_estimate(ev, name, moved[name], setting.value) | about


def of_estimate(ev: op.Evaluation, name: str, moved: dict, truth: float) -> dict:
    """Return the interval of one estimate, its verdict, and the diagnostics that the verdict rests on."""
    estimate, found = ev[name], ev.diagnostics.row(0, named=True)
    low, high = (-np.inf, -np.inf) if estimate.low is None else (estimate.low, estimate.high)
    error = estimate.std_error or 0.0
    return {
        "value": estimate.value,
        "error": error,
        "z": (estimate.value - truth) / error if error else None,
        "covers": low <= truth <= high,
        "above": low > truth,
        "below": high < truth,
        "spread": error > verdict.ROUNDING * abs(estimate.value),
        "level": ev.verdict_on(estimate).level,
        "concentration": moved["concentration"],
        "leaning": moved["skewness"] ** 2 / ev.episodes,
        "control_errors": control_errors(found) if describe(name).without_control else None,
    }


def mean_errors(found: dict, n: int) -> float:
    """Return how many of its standard errors the mean weight is from 1, or 0 where rounding explains the distance."""
    off = abs(found["mean_weight"] - 1)
    error = found["mean_weight"] * max(1 / found["ess"] - 1 / n, 0.0) ** 0.5 if found["ess"] else np.inf
    return 0.0 if off <= verdict.MEAN_ROUNDING else off / error if error else np.inf


def control_errors(found: dict) -> float | None:
    """Return how many of its standard errors the control variate is from 0."""
    mean, error = found["control_variate"], found["control_error"]
    return abs(mean) / error if mean is not None and error else None


def by_setting(runs: pl.DataFrame) -> list[dict]:
    """Return one row per problem, size and estimator."""
    medians = [pl.col(name).median().round(4) for name in ("ess", "size", "k_hat", "largest_share", "concentration")]
    given = []
    for level in LEVELS:
        said = pl.col("level") == level
        given += [
            said.mean().round(4).alias(level),
            pl.col("covers").filter(said).mean().round(4).alias(f"coverage_if_{level}"),
            pl.col("z").filter(said).mean().round(3).alias(f"z_if_{level}"),
        ]
    found = runs.group_by(KEYS, maintain_order=True).agg(
        pl.len().alias("runs"),
        pl.col("covers").mean().alias("coverage"),
        pl.col("below").mean().round(4).alias("truth_above"),
        pl.col("above").mean().round(4).alias("truth_below"),
        (pl.col("value").std() / pl.col("error").median()).round(4).alias("spread_over_error"),
        (pl.col("former") == "reliable").mean().round(4).alias("formerly_reliable"),
        *given,
        *medians,
    )
    return found.with_columns(judged_poor().alias("poor"), judged_good().alias("good")).to_dicts()


def judged_poor() -> pl.Expr:
    """Select combinations whose intervals cover too little, beyond chance."""
    covers = pl.col("coverage")
    return covers + (covers * (1 - covers) / pl.col("runs")).sqrt() < POOR


def judged_good() -> pl.Expr:
    """Select combinations whose intervals do what they say, so that a verdict below *reliable* is a false alarm."""
    return pl.all_horizontal(
        "right",
        pl.col("n") >= GOOD["episodes"],
        pl.col("coverage") >= GOOD["coverage"],
        pl.max_horizontal("truth_above", "truth_below") <= GOOD["missed_on_a_side"],
        pl.col("spread_over_error") <= GOOD["spread_over_error"],
        pl.col("size") >= verdict.FRAGILE_BELOW,
    ).fill_null(False)


def passed() -> dict[str, pl.Expr]:
    """Return for each rule of the verdict the expression by which an estimate passes as reliable."""
    share, leans = pl.col("concentration"), pl.col("leaning") > verdict.LEANING
    leaning = (
        pl.when(pl.col("estimator").is_in(named(lambda about: about.weights_returns)))
        .then(verdict.FAR_WHOLE)
        .otherwise(verdict.FAR)
    )
    near = pl.col("predicted_leaning").is_null() | (pl.col("predicted_leaning") <= leaning)
    nearly_all = (pl.col("n") >= verdict.FEWEST) & (pl.col("size") >= verdict.NEARLY_EQUAL * pl.col("n"))
    spread_out = share <= pl.when(leans).then(verdict.CONCENTRATED_LEANING).otherwise(verdict.CONCENTRATED)
    return {
        "spread": pl.col("spread"),
        "size": (pl.col("size") >= verdict.FRAGILE_BELOW) | nearly_all,
        "predicted_leaning": near,
        "lacking": pl.col("lacking") <= verdict.LACKING,
        "mean_errors": pl.col("mean_errors") <= verdict.MEAN_ERRORS,
        "log10_e_value": pl.col("log10_e_value") < verdict.EVIDENCE,
        "control_errors": pl.col("control_errors").is_null() | (pl.col("control_errors") <= verdict.CONTROL_ERRORS),
        "k_hat": pl.col("k_hat").is_null() | (pl.col("k_hat") <= verdict.HEAVY) | (share <= verdict.HEAVY_SHARE),
        "concentration": spread_out,
        "leaning": spread_out,
    }


def by_range(runs: pl.DataFrame, name: str) -> list[dict]:
    """Return coverage between the limits of one diagnostic, for estimates that pass all other rules as reliable."""
    rules = passed()
    chosen = runs.filter(*(rule for other, rule in rules.items() if other != name and rule is not rules[name]))
    if name == "k_hat":
        chosen = chosen.filter(pl.col("concentration") > verdict.HEAVY_SHARE)
    if name == "leaning":
        limits = verdict.CONCENTRATED_LEANING, verdict.CONCENTRATED
        chosen = chosen.filter(pl.col("concentration").is_between(*limits, closed="right"))
    rows = []
    for low, high in pairwise([-np.inf, *(RANGES | RANGES_OF_ALL)[name], np.inf]):
        part = chosen.filter(pl.col(name).is_between(low, high, closed="left"))["covers"]
        ends = [None if np.isinf(end) else end for end in (low, high)]
        rows.append({"from": ends[0], "to": ends[1], "intervals": len(part), "coverage": part.mean()})
    return rows


def comparison(runs: pl.DataFrame, rows: list[dict]) -> list[dict]:
    """Compare the present and the former rules on logs that are not misleading, with and without the far problems."""
    found = []
    for which, chosen in (("without far ones", lambda name: not name.startswith(FAR)), ("all", lambda _: True)):
        some = [row for row in rows if row["right"] and chosen(row["setting"])]
        poor, good = ([row for row in some if row[kind]] for kind in ("poor", "good"))
        covering = [row for row in some if row["coverage"] >= GOOD["coverage"] and row["n"] >= GOOD["episodes"]]
        logs = runs.filter("right", pl.col("setting").is_in({row["setting"] for row in some}))
        for rules, share, level in (("former", "formerly_reliable", "former"), ("present", "reliable", "level")):
            said = logs.filter(pl.col(level) == "reliable")
            cells = said.group_by(KEYS).agg(pl.col("covers").mean(), pl.len()).filter(pl.col("len") >= 50)
            found.append(
                {
                    "problems": which,
                    "rules": rules,
                    "poor": len(poor),
                    "poor_but_reliable": float(np.mean([row[share] for row in poor])),
                    "worst": max(row[share] for row in poor),
                    "good": len(good),
                    "false_alarms": 1 - float(np.mean([row[share] for row in good])),
                    "covering": len(covering),
                    "false_alarms_of_covering": 1 - float(np.mean([row[share] for row in covering])),
                    "coverage_if_reliable": said["covers"].mean(),
                    "cells_below_92": int((cells["covers"] < 0.92).sum()),
                    "cells": len(cells),
                }
            )
    return found


def without(runs: pl.DataFrame, rows: list[dict]) -> list[dict]:
    """Return how often estimates on logs that are not misleading would be reliable without one of the rules."""
    rules, found = passed(), []
    kinds = pl.DataFrame([{key: row[key] for key in (*KEYS, "poor", "good")} for row in rows])
    logs = runs.filter("right").join(kinds, on=list(KEYS))
    names = [name for name in rules if name != "leaning"]  # it is one rule together with the concentration
    for dropped in (None, *names):
        others = [rule.fill_null(True) for name, rule in rules.items() if name in names and name != dropped]
        shares = logs.group_by(*KEYS, "poor", "good").agg(pl.all_horizontal(others).mean().alias("reliable"))
        poor, good = (shares.filter(kind)["reliable"] for kind in ("poor", "good"))
        about = {"poor_but_reliable": poor.mean(), "worst": poor.max(), "false_alarms": 1 - good.mean()}
        found.append({"rule": dropped} | about)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500, help="repetitions of each problem and size")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "results" / "verdict")
    options = parser.parse_args()
    found = []
    for number, setting in enumerate(settings()):
        for n in (*SIZES, LARGE) if setting.large else SIZES:
            rows = list(measured(number, setting, n, options.runs))
            named = {"setting": pl.lit(setting.name), "right": pl.lit(setting.right)}
            found.append(pl.DataFrame(rows, infer_schema_length=None).with_columns(**named))
        print(setting.name, flush=True)
    runs = pl.concat(found, how="diagonal_relaxed").with_columns(former=former_level())
    rows = by_setting(runs)
    document = {
        "runs": options.runs,
        "good": GOOD,
        "comparison": comparison(runs, rows),
        "without": without(runs, rows),
        "settings": rows,
        "ranges": {name: by_range(runs.filter("right"), name) for name in RANGES}
        | {name: by_range(runs, name) for name in RANGES_OF_ALL},
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "table.json").write_text(json.dumps(document, indent=1) + "\n")
    (options.out / "README.md").write_text(page(document))


if __name__ == "__main__":
    main()
