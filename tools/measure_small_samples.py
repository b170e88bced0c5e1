"""Measure how often asymptotic and heuristic intervals hold the truth in small samples:

    python tools/measure_small_samples.py [--logs 400] [--out docs/results/intervals]

The logs of `small_sample_problems` are evaluated hundreds at once in NumPy, and the ends for the first log of each size
are compared with those of `evaluate`. The tool writes `small-samples.json` and `small-samples.md`: the coverage of
two-sided 95% intervals and of 95% bounds from each side, by size, by the effective sample size of the log, and by
problem. `t, influence` is `t` without its correction for small samples. Logs in which all values are equal have no
interval and are not counted.
"""

import argparse
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from statistics import NormalDist

import numpy as np
import offpolicy as op
import polars as pl
from offpolicy.intervals import leave_one_out, shortfalls
from offpolicy.intervals.normal import student_quantile
from small_sample_problems import Logs, drawn, problems
from small_samples_page import page

SIZES = (20, 50, 100, 300, 1000, 3000)
ESTIMATORS = ("is", "step-is", "wis", "step-wis", "dr", "wdr")
WEIGHTED = ("wis", "step-wis", "wdr")
LEVEL, REPLICATES, LARGEST_RESAMPLED, RESAMPLED_LOGS = 0.95, 999, 1000, 200
#: The methods that are compared with `evaluate`.
COMPARED = ("normal", "t", "t-skew", "likelihood")
student = np.vectorize(student_quantile, otypes=[float])


def columns(logs: Logs, discount: float, estimator: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return numerators, denominators and weights of the ratios whose sum is θ."""
    c, powers = logs.c, discount ** np.arange(logs.c.shape[2])
    before = np.concatenate([np.ones_like(c[:, :, :1]), c[:, :, :-1]], axis=2)
    residual = c * (logs.reward - logs.q_hat)
    returns = c[:, :, -1:] * (powers * logs.reward).sum(axis=2, keepdims=True)
    one, ones = np.ones(1), np.ones_like(c[:, :, :1])
    match estimator:
        case "is":
            return returns, ones, one
        case "step-is":
            return (powers * c * logs.reward).sum(axis=2, keepdims=True), ones, one
        case "dr":
            return (powers * (residual + before * logs.v_hat)).sum(axis=2, keepdims=True), ones, one
        case "wis":
            return returns, c[:, :, -1:], one
        case "step-wis":
            return c * logs.reward, c, powers
    return (
        np.concatenate([residual, before * logs.v_hat], axis=2),
        np.concatenate([c, before], axis=2),
        np.concatenate([powers, powers]),
    )


class Sample:
    """One estimator on a block of logs."""

    def __init__(self, logs: Logs, discount: float, estimator: str) -> None:
        self.estimator, self.n = estimator, logs.c.shape[1]
        self.weight = logs.c[:, :, -1]
        self.ess = self.weight.sum(axis=1) ** 2 / (self.weight**2).sum(axis=1)
        self.num, self.den, self.weights = columns(logs, discount, estimator)
        a, b = self.num.sum(axis=1), self.den.sum(axis=1)
        self.theta = (self.weights * a / b).sum(axis=1)
        off = self.num - (a / b)[:, None] * self.den
        self.psi = self.n * (self.weights * off / b[:, None]).sum(axis=2)
        rest = b[:, None] - self.den
        terms = np.where(rest > 0, self.weights * off / np.where(rest > 0, rest, 1.0), 0.0)
        self.d = (self.n - 1) * terms.sum(axis=2)
        self.error = root(self.psi)
        self.flat = self.error <= 1e-12 * np.abs(self.num).max(axis=(1, 2))
        self.larger = np.maximum(self.error, root(self.d))
        centred = self.d - self.d.mean(axis=1, keepdims=True)
        square = np.where(self.flat, 1.0, (centred**2).mean(axis=1))
        kurtosis = (centred**4).mean(axis=1) / square**2
        degrees = 2 / ((np.maximum(kurtosis, 1.0) - 3) / self.n + 2 / (self.n - 1))
        self.degrees = np.minimum(self.n - 1.0, degrees)
        self.skewness = (centred**3).mean(axis=1) / square**1.5

    def by_error(self, error: np.ndarray, quantile: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
        return self.theta - quantile * error, self.theta + quantile * error

    def skewed(self, quantile: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        a = self.skewness / (3 * np.sqrt(self.n))
        safe = np.where(np.abs(a) > 1e-9, a, 1.0)

        def inverse(x: np.ndarray) -> np.ndarray:
            return np.where(np.abs(a) > 1e-9, (np.cbrt(1 + 3 * safe * (x - safe / 2)) - 1) / safe, x)

        above, below = np.maximum(quantile, inverse(quantile)), np.maximum(quantile, -inverse(-quantile))
        return self.theta - self.larger * above, self.theta + self.larger * below

    def likelihood(self, p: float) -> tuple[np.ndarray, np.ndarray]:
        c, x = self.weight, self.num[:, :, 0]
        off, away = x - self.theta[:, None], c - c.mean(axis=1, keepdims=True)
        s_cc, s_xc, s_xx = (away**2).mean(axis=1), (off * away).mean(axis=1), (off**2).mean(axis=1)
        slope = s_xc / s_cc
        centre = self.theta + slope * (1 - c.mean(axis=1))
        half = student_quantile(p, self.n - 2) * np.sqrt(np.maximum(s_xx - slope * s_xc, 0) / (self.n - 2))
        determined = half <= 1e-7 * np.abs(x).max(axis=1)  # values that follow from the weights alone
        none = determined | ~((c.min(axis=1) < 1) & (c.max(axis=1) > 1))
        return np.where(none, np.nan, centre - half), np.where(none, np.nan, centre + half)

    def resampled(self, counts: np.ndarray) -> np.ndarray:
        """Return θ of each log and resample, or NaN where it has no weight."""
        b = counts @ self.den
        return (self.weights * (counts @ self.num) / b).sum(axis=2)

    def intervals(self, p: float, counts: np.ndarray | None) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Yield each method with its two ends, each of which misses with probability 1 - p."""
        n, weighted = self.n, self.estimator in WEIGHTED
        mine, ordinary = student(p, self.degrees), student_quantile(p, n - 1)
        plain = self.by_error(self.error, ordinary)
        many = self.ess >= leave_one_out.MANY
        small = self.by_error(self.larger, mine)
        corrected = tuple(np.where(many, *ends) for ends in zip(plain, small, strict=True)) if weighted else plain
        skewed = self.skewed(mine)
        yield "normal", *self.by_error(self.error, NormalDist().inv_cdf(p))
        yield "t, influence", *plain
        yield "t", *corrected
        yield "t-skew", *skewed
        yield "auto", *(np.where(many, t, other) for t, other in zip(corrected, skewed, strict=True))
        if not weighted:
            yield "likelihood", *self.likelihood(p)
        if counts is not None:
            resampled = np.where(np.isnan(found := self.resampled(counts)), -np.inf, found)
            upper = np.where(np.isnan(found), np.inf, found)
            yield "bootstrap", ordered(resampled, 1 - p), -ordered(-upper, 1 - p)
            z = corrected_levels(found, self.theta, self.psi, p)
            yield "bootstrap-bca", ordered(resampled, z[0]), -ordered(-upper, 1 - z[1])


def root(values: np.ndarray) -> np.ndarray:
    n = values.shape[1]
    return np.sqrt((values**2).sum(axis=1) / (n * (n - 1)))


def ordered(replicates: np.ndarray, level: np.ndarray | float) -> np.ndarray:
    """Return the ⌊(B+1) level⌋-th smallest of each log, or NaN where there is none or no level."""
    place = np.floor((replicates.shape[1] + 1) * np.broadcast_to(level, len(replicates)) + 1e-9)
    known = (place >= 1) & (place <= replicates.shape[1])
    chosen = np.where(known, place, 1).astype(int) - 1
    found = np.sort(replicates, axis=1)[np.arange(len(replicates)), chosen]
    return np.where(known & np.isfinite(found), found, np.nan)


def corrected_levels(replicates: np.ndarray, theta: np.ndarray, psi: np.ndarray, p: float) -> list[np.ndarray]:
    """Return the levels of BCa in the places of 1 - p and p."""
    normal = NormalDist()
    below = np.nanmean(np.where(np.isnan(replicates), np.nan, replicates < theta[:, None]), axis=1)
    equal = np.nanmean(np.where(np.isnan(replicates), np.nan, replicates == theta[:, None]), axis=1)
    share = below + equal / 2
    z_0 = np.array([normal.inv_cdf(s) if 0 < s < 1 else np.nan for s in share])
    a = (psi**3).sum(axis=1) / (6 * (psi**2).sum(axis=1) ** 1.5)
    levels = []
    for level in (1 - p, p):
        z = z_0 + normal.inv_cdf(level)
        level_of = np.where(1 - a * z > 0, z_0 + z / (1 - a * z), np.nan)
        levels.append(np.array([normal.cdf(x) if np.isfinite(x) else np.nan for x in level_of]))
    return levels


def tallied(sample: Sample, value: float, counts: np.ndarray | None) -> Iterator[dict]:
    """Yield one row per method and log: whether the two-sided interval, the lower and the upper bound hold."""
    two, one = (list(sample.intervals(p, counts)) for p in (0.5 + LEVEL / 2, LEVEL))
    for (method, low, high), (_, lower, upper) in zip(two, one, strict=True):
        yield pl.DataFrame(
            {
                "method": method,
                "ess": sample.ess,
                "two": np.where(np.isnan(low + high), np.nan, (low <= value) & (value <= high)),
                "lower": np.where(np.isnan(lower), np.nan, lower <= value),
                "upper": np.where(np.isnan(upper), np.nan, value <= upper),
                "width": (high - low) / np.where(sample.flat, 1.0, sample.error),
            },
            strict=False,
        ).filter(pl.Series(~sample.flat))


def compare(logs: Logs, discount: float, estimators: list[str]) -> None:
    """Refuse ends of the first log that differ from those of `evaluate`."""
    ev = op.evaluate(logs.frame(0), discount=discount, horizon=logs.c.shape[2], estimators=estimators, threads=1)
    for estimator in estimators:
        sample = Sample(logs, discount, estimator)
        if sample.flat[0]:
            continue
        for method, low, high in sample.intervals(0.5 + LEVEL / 2, None):
            if method in COMPARED:
                found = ev[estimator].interval(LEVEL, method)
                ends = [np.nan if end is None else end for end in (found.low, found.high)]
                np.testing.assert_allclose(
                    ends, [low[0], high[0]], rtol=1e-6, atol=1e-9, err_msg=f"{estimator} {method}"
                )


def measured(number: int, setting, n: int, logs: int) -> pl.DataFrame:
    """Return all rows of one problem and size."""
    rng, rows, done = np.random.default_rng([number, n]), [], 0
    counts = np.random.default_rng(n).poisson(1.0, size=(REPLICATES, n)).astype(float)
    for block in drawn(setting, rng, logs, n):
        asked = [e for e in ESTIMATORS if block.c.shape[2] > 1 or not e.startswith("step")]
        if done == 0:
            compare(block, setting.discount, asked)
        resample = counts if n <= LARGEST_RESAMPLED and done < RESAMPLED_LOGS else None
        done += len(block.c)
        for estimator in asked:
            for part in tallied(Sample(block, setting.discount, estimator), setting.value, resample):
                rows.append(part.with_columns(problem=pl.lit(setting.name), n=pl.lit(n), estimator=pl.lit(estimator)))
    return pl.concat(rows, how="vertical_relaxed").with_columns(pl.col("two", "lower", "upper").fill_nan(None))


def summary(rows: pl.DataFrame, *keys: str) -> list[dict]:
    """Return coverage and width by some keys."""
    covers = [pl.col(side).mean().round(4) for side in ("two", "lower", "upper")]
    about = [pl.col("width").median().round(3), pl.col("two").count().alias("intervals")]
    return rows.group_by(*keys, maintain_order=True).agg(*covers, *about).sort(keys, maintain_order=True).to_dicts()


def by_cell(rows: pl.DataFrame) -> list[dict]:
    """Return one row per problem, size and estimator, with the coverage of each method but the bootstrap."""
    keys, cells = ("problem", "n", "estimator"), {}
    for row in summary(rows.filter(~pl.col("method").str.starts_with("bootstrap")), *keys, "method"):
        cell = cells.setdefault(tuple(row[key] for key in keys), {key: row[key] for key in keys})
        cell[row["method"]] = {side: row[side] for side in ("two", "lower", "upper")}
    return list(cells.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=400, help="logs of each problem and size")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "results" / "intervals")
    options = parser.parse_args()
    warnings.simplefilter("ignore", RuntimeWarning)
    found = []
    for number, setting in enumerate(problems()):
        found += [measured(number, setting, n, options.logs) for n in SIZES]
        print(setting.name, flush=True)
    group = pl.when(pl.col("estimator").is_in(WEIGHTED)).then(pl.lit("weighted")).otherwise(pl.lit("averages"))
    least = pl.max_horizontal(pl.when(pl.col("ess") >= size).then(size).otherwise(0) for size in shortfalls.SIZES)
    rows = pl.concat(found).with_columns(group=group, least_ess=least)
    document = {
        "logs": options.logs,
        "by_size": summary(rows, "group", "n", "method"),
        "by_ess": summary(rows, "group", "least_ess", "method"),
    }
    cells = by_cell(rows)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "small-samples.json").write_text(json.dumps(document, indent=1) + "\n")
    with (options.out / "small-samples-cells.jsonl").open("w") as file:
        file.writelines(json.dumps(cell) + "\n" for cell in cells)
    (options.out / "small-samples.md").write_text(page(document, cells))


if __name__ == "__main__":
    main()
