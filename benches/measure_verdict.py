"""Measure how often intervals cover the truth, and what the verdict says of them, on problems from easy to hopeless:

    python benches/measure_verdict.py [--runs 500] [--out docs/verdict]

Writes `table.json`: a row a problem, size and estimator, with the coverage of its 95% t interval, how often its verdict
was what, and the medians of the diagnostics; and the same coverage by ranges of each diagnostic. `README.md`
shows both.
"""

import argparse
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import offpolicy as op
import polars as pl
from hard_problems import Setting, settings
from offpolicy import verdict
from offpolicy.verdict import LEVELS
from verdict_page import page

SIZES, LARGE = (30, 100, 300, 1000, 5000), 100_000
ESTIMATORS = ("is", "step-is", "wis", "step-wis", "dr", "wdr")
#: Ranges of the diagnostics by which coverage is told, of logs that are what they seem; and of all.
RANGES = {
    "ess": (10, 30, 100, 300, 1000),
    "k_hat": (0.0, 0.2, 0.4, 0.5, 0.6, 0.7),
    "concentration": (0.02, 0.05, 0.1, 0.2, 0.4),
}
RANGES_OF_ALL = {
    "mean_errors": (1, 2, 3, 4, 5, 10, 50),
    "log10_e_value": (0, 1, 2, 3, 5, 10),
    "control_errors": (1, 2, 3, 4, 5, 10, 50),
}


def measured(number: int, setting: Setting, n: int, runs: int) -> Iterator[dict]:
    """A row a run and estimator."""
    for run in range(runs):
        log = setting.draw(np.random.default_rng([number, n, run]), n)
        ev = op.evaluate(log, discount=setting.discount, threads=1)
        found = ev.diagnostics.row(0, named=True)
        about = {name: found[name] for name in ("ess", "k_hat", "largest_share", "mean_weight", "log10_e_value")}
        about["mean_errors"] = mean_errors(found, n)
        shares = dict(ev.leverage.select("estimator", "concentration").iter_rows())
        for name in ESTIMATORS:
            if name in shares:
                estimate = ev[name]
                covers = estimate.low is not None and estimate.low <= setting.value <= estimate.high
                level = ev.verdict_on(estimate).level
                yield {
                    "n": n,
                    "estimator": name,
                    "covers": covers,
                    "spread": (estimate.std_error or 0.0) > verdict.ROUNDING * abs(estimate.value),
                    "level": level,
                    "concentration": shares[name],
                    "control_errors": control_errors(found) if name in verdict.MODELLED else None,
                } | about


def mean_errors(found: dict, n: int) -> float:
    """How many of its standard errors the mean weight is from 1; none where rounding explains it."""
    off = abs(found["mean_weight"] - 1)
    error = found["mean_weight"] * max(1 / found["ess"] - 1 / n, 0.0) ** 0.5
    return 0.0 if off <= verdict.MEAN_ROUNDING else off / error if error else np.inf


def control_errors(found: dict) -> float | None:
    """How many of its standard errors the control variate is from 0."""
    mean, error = found["control_variate"], found["control_error"]
    return abs(mean) / error if mean is not None and error else None


def by_setting(runs: pl.DataFrame) -> list[dict]:
    """A row a problem, size and estimator."""
    medians = [pl.col(name).median().round(4) for name in ("ess", "k_hat", "largest_share", "concentration")]
    levels = [(pl.col("level") == level).mean().round(4).alias(level) for level in LEVELS]
    trusted = pl.col("covers").filter(pl.col("level") == "reliable").mean().round(4).alias("coverage_if_reliable")
    keys = ("setting", "right", "n", "estimator")
    found = runs.group_by(keys, maintain_order=True)
    return found.agg(
        pl.len().alias("runs"), pl.col("covers").mean().alias("coverage"), trusted, *levels, *medians
    ).to_dicts()


def passed() -> dict[str, pl.Expr]:
    """What each rule of the verdict lets pass as reliable."""
    return {
        "spread": pl.col("spread"),
        "ess": pl.col("ess") >= verdict.FRAGILE_BELOW,
        "mean_errors": pl.col("mean_errors") <= verdict.MEAN_ERRORS,
        "log10_e_value": pl.col("log10_e_value") < verdict.EVIDENCE,
        "control_errors": pl.col("control_errors").is_null() | (pl.col("control_errors") <= verdict.CONTROL_ERRORS),
        "k_hat": pl.col("k_hat").is_null() | (pl.col("k_hat") <= verdict.HEAVY) | no_tail(),
        "concentration": pl.col("concentration") <= verdict.CONCENTRATED,
    }


def no_tail() -> pl.Expr:
    """True where the largest weight is too small to be that of a heavy tail."""
    return pl.col("largest_share") <= pl.min_horizontal(
        pl.lit(verdict.SMALL_SHARE), verdict.SMALL_SHARE_BY_ROOT / pl.col("n").sqrt()
    )


def by_range(runs: pl.DataFrame, name: str) -> list[dict]:
    """Coverage between the limits of one diagnostic, where all other rules let the estimate pass as reliable."""
    chosen = runs.filter(*(rule for other, rule in passed().items() if other != name))
    if name == "k_hat":
        chosen = chosen.filter(~no_tail())
    limits = [-np.inf, *(RANGES | RANGES_OF_ALL)[name], np.inf]
    rows = []
    for low, high in pairwise(limits):
        part = chosen.filter(pl.col(name).is_between(low, high, closed="left"))["covers"]
        ends = [None if np.isinf(end) else end for end in (low, high)]
        rows.append({"from": ends[0], "to": ends[1], "intervals": len(part), "coverage": part.mean()})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500, help="repetitions of each problem and size")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "verdict")
    options = parser.parse_args()
    found = []
    for number, setting in enumerate(settings()):
        for n in (*SIZES, LARGE) if setting.large else SIZES:
            rows = list(measured(number, setting, n, options.runs))
            named = {"setting": pl.lit(setting.name), "right": pl.lit(setting.right)}
            found.append(pl.DataFrame(rows, infer_schema_length=None).with_columns(**named))
        print(setting.name, flush=True)
    runs = pl.concat(found, how="diagonal_relaxed")
    document = {
        "runs": options.runs,
        "settings": by_setting(runs),
        "ranges": {name: by_range(runs.filter("right"), name) for name in RANGES}
        | {name: by_range(runs, name) for name in RANGES_OF_ALL},
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "table.json").write_text(json.dumps(document, indent=1) + "\n")
    (options.out / "README.md").write_text(page(document))


if __name__ == "__main__":
    main()
