"""Write docs/results/magic.md, the experiment of Thomas & Brunskill (2016) for `magic`: python tools/magic_table.py"""

import argparse
from pathlib import Path

import numpy as np
import published_magic
from thomas_brunskill import DOMAINS, ESTIMATORS, Hybrid, estimates, logs

SIZES = [2**k for k in range(7, 13)]
#: The estimates whose mean squared errors are shown, in this order.
FORMS = (*ESTIMATORS, "corrected", "published")
HEAD = (
    "| n | reg | wdr | magic | magic / the better | corrected / the better | published / the better "
    "| wdr ± 1.96 SE | magic ± 1.96 SE | share of wdr |"
)
PAGE = """\
# MAGIC, between the log and the model

Made by `python tools/magic_table.py --runs {runs}`. The three domains of Thomas & Brunskill (2016), described in
[thomas_brunskill.py](../../tests/support/thomas_brunskill.py), n trajectories of the behaviour policy, a model fitted
to the same trajectories, {runs} logs. Columns: the mean squared errors of the model alone (`reg`), of `wdr` and of
`magic`; that of `magic` over the smaller of the other two; the same for the paper's own form of MAGIC, with a
bootstrap's interval of `wdr`, as its author corrected it and as its figures were made
([published_magic.py](../../tests/support/published_magic.py)); how often value ± 1.96 standard errors holds the truth;
and the mean share of g_H = `wdr` in the blend.

The share of each length is in `Estimate.blend`. [magic.rs](../../rust/core/src/estimators/magic.rs) has the
definition, and where it departs from that paper: covariances by influence functions, and the interval of `wdr` from its
standard error instead of a bootstrap.

**No interval comes with `magic`.** Its standard error is that of the blend whose shares were found, without the bias of
the model's part: the last but one column says how often it would hold the truth. A model inside the interval of `wdr`
counts as unbiased, whatever it is. So every interval is withheld, and the verdict on `magic` is never better than
*fragile*. That of `wdr` is worth what the verdict on `wdr` says.

**Close to the better of the two?** The mean squared error of `magic` over that of the better is at most

{worst}

Where the model wins, `wdr` rests on a handful of trajectories and its interval is too narrow, so that a right model is
often taken for a biased one. A wider interval, such as the bootstrap's, mends that, and takes a wrong model for a right
one where `wdr` wins: no form is close to the better one everywhere. The reference code of the paper's first author
says that the covariances behind its figures lack a factor n; that published form is no closer than ours at its worst.

{tables}
"""


def measured(domain: Hybrid, seed: int) -> np.ndarray:
    """Return (sizes, numbers): squared errors, whether ±1.96 standard errors hold the truth, and the share of g_H."""
    found = []
    for log in logs(domain, SIZES, seed):
        ours = estimates(domain, log)
        forms = [
            published_magic.value(log, domain.horizon, np.random.default_rng(seed), factor) for factor in (True, False)
        ]
        distances = np.abs(np.array([*(each.value for each in ours), *forms]) - domain.truth)
        held = [distance <= 1.96 * each.std_error for distance, each in zip(distances, ours, strict=False)]
        found.append([*distances**2, *held, ours[-1].blend[domain.horizon]])
    return np.array(found)


def table(domain: Hybrid, runs: int) -> tuple[str, str]:
    """Return the table of one domain, and its worst ratios in words."""
    mean = sum(measured(domain, 1_000_000 + seed) for seed in range(runs)) / runs
    errors, held, share = mean[:, : len(FORMS)], mean[:, len(FORMS) : -1], mean[:, -1]
    over = errors[:, 2:] / errors[:, :2].min(axis=1, keepdims=True)
    lines = [f"## {domain.name}", "", HEAD, "|" + "---:|" * 10]
    for n, error, ratio, inside, x in zip(SIZES, errors, over, held, share, strict=True):
        cells = [*(f"{e:.3g}" for e in error[:3]), *(f"{r:.2f}" for r in ratio), *(f"{h:.0%}" for h in inside[1:])]
        lines.append(f"| {n} | {' | '.join(cells)} | {x:.2f} |")
    ours, corrected, published = over.max(axis=0)
    worst = (
        f"- {ours:.2f} in {domain.name}; of the corrected form {corrected:.2f}, of the published one {published:.2f}"
    )
    return "\n".join(lines), worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "results" / "magic.md")
    options = parser.parse_args()
    tables, worst = zip(*(table(domain, options.runs) for domain in DOMAINS), strict=True)
    page = PAGE.format(runs=options.runs, worst="\n".join(worst), tables="\n\n".join(tables))
    options.out.write_text(page)


if __name__ == "__main__":
    main()
