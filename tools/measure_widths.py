"""Measure how wide finite-sample intervals are: ours, the former rule of `betting`, and a published reference.

    python tools/measure_widths.py [--runs 30] [--hunted 4000] [--out docs/results/intervals]

The logs have one step, a known true value, and bounds on rewards and ratios. Ends beyond what is possible are cut off
there. `widths.json` has the mean widths and how often the truth was missed; `README.md` shows the widths.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np
import offpolicy as op
import polars as pl
from hunt_wider import hunt
from offpolicy.folds import share_of
from offpolicy.intervals.sketch import SEED

SIZES, LEVELS = (100, 1000, 10_000), (0.9, 0.99)
OURS = ("betting", "sequence", "anderson", "bernstein", "hoeffding")
Ends = tuple[float, float]


@dataclass(frozen=True)
class Law:
    """Rewards and ratios of n trajectories, their value, and the bounds that are given."""

    about: str
    draw: Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]
    value: float
    bounds: op.Bounds

    def log(self, rng: np.random.Generator, n: int) -> pl.DataFrame:
        reward, ratio = self.draw(rng, n)
        return pl.DataFrame({"episode": np.arange(n), "step": 0, "reward": reward, "ratio": ratio})


def of_rewards(about: str, draw: Callable[[np.random.Generator, int], np.ndarray], value: float) -> Law:
    """Make a law with rewards in [0, 1] and the old policy as the target."""
    return Law(about, lambda rng, n: (draw(rng, n), np.ones(n)), value, op.Bounds(reward=(0.0, 1.0), ratio=1.0))


def two(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw ratios where π0 takes each of two actions half of the time, and π1 the first in three of four."""
    return rng.choice([0.5, 1.5], n)


def capped(mean: float, sigma: float, most: float) -> float:
    """Return E min(e^z, most) for a normal z."""
    normal, top = NormalDist(mean, sigma), math.log(most)
    below = math.exp(mean + sigma**2 / 2) * normal.cdf(top - sigma**2)
    return below + most * (1 - normal.cdf(top))


WEIGHT, ORDER = capped(-0.5, 1.0, 20.0), capped(math.log(100), 1.0, 1000.0)
LAWS = {
    "coin": of_rewards("rewards 0 or 1, alike", lambda rng, n: rng.integers(0, 2, n).astype(float), 0.5),
    "one in ten": of_rewards("a reward of 1 in ten", lambda rng, n: (rng.random(n) < 0.1).astype(float), 0.1),
    "beta": of_rewards("rewards of the law Beta(10, 30)", lambda rng, n: rng.beta(10, 30, n), 0.25),
    "both signs": Law(
        "rewards even in [−1, 1], ratios ½ or 3/2",
        lambda rng, n: (rng.uniform(-1, 1, n), two(rng, n)),
        0.0,
        op.Bounds(reward=(-1.0, 1.0), ratio=1.5),
    ),
    "rare": Law(
        "a reward of 1 in a thousand, ratios ½ or 3/2",
        lambda rng, n: ((rng.random(n) < 0.001).astype(float), two(rng, n)),
        0.001,
        op.Bounds(reward=(0.0, 1.0), ratio=1.5),
    ),
    "revenue": Law(
        "one in twenty orders, for about 100 and 1000 at most; ratios ½ or 3/2",
        lambda rng, n: ((rng.random(n) < 0.05) * np.minimum(100 * np.exp(rng.normal(size=n)), 1000.0), two(rng, n)),
        0.05 * ORDER,
        op.Bounds(reward=(0.0, 1000.0), ratio=1.5),
    ),
    "heavy weights": Law(
        "a reward of 1 in three of ten, lognormal ratios up to 20",
        lambda rng, n: (
            (rng.random(n) < 0.3).astype(float),
            np.minimum(np.exp(rng.normal(-0.5, 1.0, n)), 20.0) / WEIGHT,
        ),
        0.3,
        op.Bounds(reward=(0.0, 1.0), ratio=20.0 / WEIGHT),
    ),
}


def falling(log_capital: Callable[[float], float], delta: float, high: float) -> float:
    """Find where a capital that falls in m passes 1/δ."""
    low = 0.0
    for _ in range(40 if high > 0 else 0):
        m = (low + high) / 2
        low, high = (m, high) if log_capital(m) >= math.log(1 / delta) else (low, m)
    return low


def former(x: np.ndarray, delta: float) -> float:
    """Return the bound by the former betting: five rounds, one stake for each, by rewards alone."""
    rounds = np.searchsorted((0.05, 0.1, 0.2, 0.4, 1.0), share_of(range(len(x)), SEED), side="right")
    stake = np.zeros(len(x))
    for k in range(1, 5):
        seen = x[rounds < k]
        if seen.any():
            spread = seen.var() + seen.mean() ** 2 / len(seen)
            stake[rounds == k] = math.sqrt(2 * math.log(1 / delta) / (len(x) * spread))
    return falling(lambda m: float(np.log1p(np.minimum(stake, 0.75 / m) * (x - m)).sum()), delta, float(x.max()))


def hedged(x: np.ndarray, delta: float) -> float:
    """Return a lower bound by the hedged capital of Waudby-Smith & Ramdas (2024), section 4.2, for x in [0, 1].

    It adds the values one by one with λ_t = min(√(2 ln(1/δ) / (n σ²_{t−1})), 0.9/m), where mean and variance start from
    one more value ½ and one more square ¼. The largest capital of all t counts.
    """
    n, t = len(x), np.arange(1, len(x) + 1)
    mean = (0.5 + np.cumsum(x)) / (t + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (t + 1)
    stake = np.sqrt(2 * math.log(1 / delta) / (n * np.append(0.25, variance[:-1])))
    return falling(lambda m: float(np.log1p(np.minimum(stake, 0.9 / m) * (x - m)).cumsum().max()), delta, 1.0)


def ends_of(law: Law, log: pl.DataFrame, level: float) -> Iterator[tuple[str, Ends]]:
    """Yield every method with its interval of `step-is`."""
    estimate = op.evaluate(log, horizon=1, estimators=["step-is"], bounds=law.bounds, threads=1)["step-is"]
    for method in OURS:
        found = estimate.interval(level, method)
        yield method, (found.low, found.high)
    c, r, delta = log["ratio"].to_numpy(), log["reward"].to_numpy(), (1 - level) / 2
    least, most = law.bounds.rewards()
    yield "former betting", (least + former(c * (r - least), delta), most - former(c * (most - r), delta))
    low, high = law.bounds.range("step-is", estimate.terms)
    share = (c * r - low) / (high - low)
    yield "one by one", (low + (high - low) * hedged(share, delta), high - (high - low) * hedged(1 - share, delta))


def measure(runs: int) -> list[dict]:
    rows = []
    for name, law in LAWS.items():
        least, most = law.bounds.rewards()
        for n in SIZES:
            for level in LEVELS:
                widths: dict[str, list[float]] = {}
                missed: dict[str, int] = {}
                wider = 0
                for run in range(runs if n < 10_000 else max(1, runs // 2)):
                    log = law.log(np.random.default_rng([run, n]), n)
                    ends = dict(ends_of(law, log, level))
                    wider += any(np.array([-1, 1]) * ends["betting"] > np.array([-1, 1]) * ends["bernstein"])
                    for method, (low, high) in ends.items():
                        wide = min(max(high, least), most) - max(min(low, most), least)
                        widths.setdefault(method, []).append(wide)
                        missed[method] = missed.get(method, 0) + (not low <= law.value <= high)
                means = {method: float(np.mean(each)) for method, each in widths.items()}
                cell = {"law": name, "n": n, "level": level, "runs": len(widths["betting"])}
                rows.append(cell | {"widths": means, "missed": missed, "wider_than_bernstein": wider})
                print(name, n, level, {method: f"{width:.4g}" for method, width in means.items()}, flush=True)
    return rows


PAGE = """# How wide intervals for finite samples are

Made by `python tools/measure_widths.py --runs {runs}`: mean widths of two-sided intervals of `step-is` over {runs}
logs of one step (half as many at n = 10,000), with bounds on rewards and ratios; [widths.json](widths.json) has all
numbers. Ends beyond what is possible are cut off there. *former betting* is the rule that `betting` followed before:
five rounds with one stake each, and nothing made of a bound on ratios. *one by one* is the hedged capital of
Waudby-Smith & Ramdas (2024) with a stake for each trajectory, in the order of the log, written down in
[measure_widths.py](../../../tools/measure_widths.py) from the paper; it needs the order, which a state that merges does
not have.

{summary}

| law | what it is | value | ratios up to |
| --- | --- | --- | --- |
{laws}

{tables}

## Beside `bernstein`

In {wider} of the {compared} logs above an end of `betting` was further out than that of `bernstein`. Of {samples:,}
samples of seven kinds of laws ([hunt_wider.py](../../../tools/hunt_wider.py)), n = 5 to 5000 and δ = 10⁻⁶ to ½,
`bernstein` said something in {telling:,}, and was better in {better}: the distance of `betting` from the mean was
{median:.2f} of its distance in the median, and {worst:.2f} at worst.
[test_betting.py](../../../tests/unit/intervals/test_betting.py)
compares them on random samples, and two exceptions were found that way, of 94 trajectories at 75% and of 206 at
93.75%: what this page shows is
measured, not proved, see [betting.py](../../../python/offpolicy/intervals/betting.py).
"""


def page(rows: list[dict], hunted: dict, runs: int) -> str:
    methods = ("betting", "former betting", "one by one", "sequence", "anderson", "bernstein", "hoeffding")
    tables = []
    for level in LEVELS:
        lines = [["law", "n", *methods], ["---"] * (2 + len(methods))]
        for row in rows:
            if row["level"] == level:
                widths = [row["widths"][method] for method in methods]
                first, *others = (f"{width:.4g}" for width in widths)
                shares = [f"{other} ({width / widths[0]:.2f})" for other, width in zip(others, widths[1:], strict=True)]
                lines.append([row["law"], str(row["n"]), f"**{first}**", *shares])
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        tables.append(f"## {100 * level:g}%\n\nIn parentheses: the width over that of `betting`.\n\n{table}")
    laws = "\n".join(
        f"| {name} | {law.about} | {law.value:.4g} | {law.bounds.ratio:.4g} |" for name, law in LAWS.items()
    )
    compared, wider = (sum(row[key] for row in rows) for key in ("runs", "wider_than_bernstein"))
    counts = hunted | {"runs": runs, "compared": compared, "wider": wider, "better": hunted["wider"]}
    return PAGE.format(summary=summary(rows), laws=laws, tables="\n\n".join(tables), **counts)


def summary(rows: list[dict]) -> str:
    """Return the mean ratios of widths by size, and the shares of misses."""
    lines = []
    for other in ("former betting", "one by one", "bernstein"):
        means = []
        for n in SIZES:
            ratios = [row["widths"]["betting"] / row["widths"][other] for row in rows if row["n"] == n]
            means.append(f"{np.exp(np.mean(np.log(ratios))):.2f} at n = {n:,}")
        lines.append(f"- Of the width of `{other}` that of `betting` is {', '.join(means)} (geometric means).")
    missed, allowed = (
        sum(row["missed"]["betting"] for row in rows),
        sum((1 - row["level"]) * row["runs"] for row in rows),
    )
    narrower = [
        f"{row['law']} at n = {row['n']:,} and {100 * row['level']:g}%"
        for row in rows
        if row["widths"]["one by one"] < row["widths"]["betting"]
    ]
    lines.append(f"- `one by one` is narrower than `betting` in: {'; '.join(narrower) or 'none'}.")
    lines.append(f"- `betting` missed the truth {missed} times, where {allowed:.0f} are allowed.")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--hunted", type=int, default=4000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "results" / "intervals")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rows, hunted = measure(options.runs), hunt(options.hunted)
    cells = ",\n".join(map(json.dumps, rows))
    (options.out / "widths.json").write_text(f'{{"hunt": {json.dumps(hunted)}, "cells": [\n{cells}\n]}}\n')
    (options.out / "README.md").write_text(page(rows, hunted, options.runs))


if __name__ == "__main__":
    main()
