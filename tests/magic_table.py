"""Writes docs/magic.md, the experiment of Thomas & Brunskill (2016) for `magic`: python tests/magic_table.py"""

import argparse
from pathlib import Path

import numpy as np
from thomas_brunskill import DOMAINS, ESTIMATORS, Hybrid, run

SIZES = [2**k for k in range(7, 13)]
HEAD = "| n | reg | wdr | magic | magic / the better | wdr ± 1.96 SE | magic ± 1.96 SE | share of wdr |"
PAGE = """\
# MAGIC, between the log and the model

Made by `python tests/magic_table.py --runs {runs}`. The three domains of Thomas & Brunskill (2016), described in
[thomas_brunskill.py](../tests/thomas_brunskill.py), n trajectories of the behaviour policy, a model fitted to the same
trajectories, {runs} logs. Columns: the mean squared errors of the model alone (`reg`), of `wdr` and of `magic`;
that of `magic` over the smaller of the other two; how often value ± 1.96 standard errors holds the truth; and the mean
share of g_H = `wdr` in the blend.

The share of each length is in `Estimate.blend`. [magic.rs](../rust/core/src/estimators/magic.rs) has the
definition, and where it departs from that paper: covariances by influence functions, and the interval of `wdr` from its
standard error instead of a bootstrap.

**No interval comes with `magic`.** Its standard error is that of the blend whose shares were found, without the bias of
the model's part: the last but one column says how often it would hold the truth. A model inside the interval of `wdr`
counts as unbiased, whatever it is. So every interval is withheld, and the verdict on `magic` is never better than
*fragile*. That of `wdr` is worth what the verdict on `wdr` says.

The mean squared error of `magic` over that of the better of the two is at most {worst}.
Where the model wins, `wdr` rests on a handful of trajectories and its interval is too narrow, so that a right model is
often taken for a biased one.

{tables}
"""


def table(domain: Hybrid, runs: int) -> tuple[str, str]:
    """Errors, how often the truth is within 1.96 standard errors, and the mean share of g_H; and the worst ratio."""
    squares = np.zeros((len(SIZES), len(ESTIMATORS)))
    held = np.zeros_like(squares)
    share = np.zeros(len(SIZES))
    for seed in range(runs):
        for i, found in enumerate(run(domain, SIZES, 1_000_000 + seed)):
            for e, name in enumerate(ESTIMATORS):
                distance = abs(found[name].value - domain.truth)
                squares[i, e] += distance**2 / runs
                held[i, e] += (distance <= 1.96 * found[name].std_error) / runs
            share[i] += found["magic"].blend[domain.horizon] / runs
    lines = [f"## {domain.name}", "", HEAD, "|" + "---:|" * 8]
    for n, (reg, wdr, magic), (_, by_wdr, by_magic), x in zip(SIZES, squares, held, share, strict=True):
        errors = f"{reg:.3g} | {wdr:.3g} | {magic:.3g} | {magic / min(reg, wdr):.2f}"
        lines.append(f"| {n} | {errors} | {by_wdr:.0%} | {by_magic:.0%} | {x:.2f} |")
    worst = (squares[:, 2] / squares[:, :2].min(axis=1)).max()
    return "\n".join(lines), f"{worst:.2f} in {domain.name}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "magic.md")
    options = parser.parse_args()
    tables, worst = zip(*(table(domain, options.runs) for domain in DOMAINS), strict=True)
    page = PAGE.format(runs=options.runs, worst=", ".join(worst), tables="\n\n".join(tables))
    options.out.write_text(page)


if __name__ == "__main__":
    main()
