"""The tables of docs/magic.md: python docs/magic.py --runs 500"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from thomas_brunskill import DOMAINS, ESTIMATORS, Hybrid, run

SIZES = [2**k for k in range(7, 13)]
HEAD = "| n | reg | wdr | magic | magic / the better | magic / wdr | wdr's interval | magic's interval | share of wdr |"


def table(domain: Hybrid, runs: int) -> str:
    """Mean squared errors, how often 95% intervals hold the truth, and the mean share of g_H."""
    squares = np.zeros((len(SIZES), len(ESTIMATORS)))
    held = np.zeros_like(squares)
    share = np.zeros(len(SIZES))
    for seed in range(runs):
        for i, found in enumerate(run(domain, SIZES, 1_000_000 + seed)):
            for e, name in enumerate(ESTIMATORS):
                squares[i, e] += (found[name].value - domain.truth) ** 2 / runs
                held[i, e] += (found[name].low <= domain.truth <= found[name].high) / runs
            share[i] += found["magic"].blend[domain.horizon] / runs
    lines = [f"### {domain.name}", "", HEAD, "|" + "---:|" * 9]
    for n, (reg, wdr, magic), (_, by_wdr, by_magic), x in zip(SIZES, squares, held, share, strict=True):
        ratios = f"{magic / min(reg, wdr):.2f} | {magic / wdr:.2f}"
        lines.append(
            f"| {n} | {reg:.3g} | {wdr:.3g} | {magic:.3g} | {ratios} | {by_wdr:.0%} | {by_magic:.0%} | {x:.2f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    runs = parser.parse_args().runs
    print("\n\n".join(table(domain, runs) for domain in DOMAINS))
