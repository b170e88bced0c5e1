"""Diagnostics of the weights as text: a few lines per policy, some steps, and what moves the estimates."""

from __future__ import annotations

from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table
from rich.text import Text

from offpolicy._util.visible import visible
from offpolicy.cli.show import LOOK, NONE, cell, line, name_width, put, rounding, size
from offpolicy.evaluation.result import Evaluation
from offpolicy.evaluation.verdict import ENOUGH

#: Rows per policy in the table of steps.
SOME_STEPS = 10


def diagnostics(out: Console, ev: Evaluation) -> None:
    """Show all diagnostics, after the estimates."""
    lengths = ev.details.length_summary()
    spread = "{shortest:,} to {longest:,} steps, median {median:,}, mean {mean:,.1f}".format(**lengths)
    line(out, Text(f"lengths of episodes: {spread}"))
    for row in ev.diagnostics.iter_rows(named=True):
        for text in about(row, ev.episodes):
            line(out, Text.assemble((visible(row["policy"]), "bold"), f": {visible(text)}"))
    if not ev.by_step.is_empty():
        put(out, by_step(ev.details.some_steps(SOME_STEPS), name_width(out)), ("running",))
        put(out, leverage(ev, name_width(out)), ("capped", "concentration", "without ten"))


def about(row: dict[str, Any], episodes: int) -> list[str]:
    """Return the diagnostics of one policy in words.

    >>> row = {"ess": 50.0, "largest_share": 0.1, "mean_weight": 1.0, "k_limit": None}
    >>> about(row, 100)
    ['effective sample size 50.0 of 100; the largest weight has 10.0%; mean weight 1']
    """
    weights = (
        f"effective sample size {row['ess']:,.1f} of {episodes:,}; the largest weight has {row['largest_share']:.1%}"
    )
    weights += f"; mean weight {short(row['mean_weight'])}"
    if row["k_limit"] is None:
        return [weights]
    carried = row["carried_until"]
    found = [
        f"{weights} (episode {row['leader']} weighs most)",
        f"effective sample size of {ENOUGH} or more " + (f"up to t = {carried:,}" if carried else "at no step"),
        f"effective sample size {row['predicted_ess']:,.4g} as the ratios of single steps predict it",
    ]
    if row["mean_ratio"] is not None and row["log10_e_value"] is not None:
        ratio = f"mean ratio {row['mean_ratio']:.6g} (at most 1 expected)"
        found.append(f"{ratio}, e-value 10^{row['log10_e_value']:.1f} against the logged probabilities")
    if row["k_hat"] is not None:
        found.append(f"tail of the weights: k̂ = {row['k_hat']:.2f}, good up to {row['k_limit']:.2f}")
    if row["control_variate"] is not None and row["control_error"] is not None:
        control = (
            f"control variate {row['control_variate']:.3g}, standard error {row['control_error']:.3g} (0 expected)"
        )
        ratio = row["variance_ratio"]
        found.append(control + (f"; variance of step-is over dr {ratio:.3g}" if ratio is not None else ""))
    return found


def short(number: float | None) -> str:
    """Return four digits of a number, or a remark if it is beyond f64."""
    return "beyond f64" if number is None else f"{number:.4g}"


def by_step(steps: pl.DataFrame, widest: int) -> Table:
    """Return the table of some steps of each policy."""
    table = Table(**LOOK)
    table.add_column("policy", overflow="fold", max_width=widest)
    for head in ("t", "running", "ess", "mean weight", "mean ratio"):
        table.add_column(head, justify="right", no_wrap=True)
    for row in steps.iter_rows(named=True):
        numbers = (short(row[name]) for name in ("mean_weight", "mean_ratio"))
        table.add_row(cell(row["policy"]), f"{row['step']:,}", f"{row['running']:,}", size(row["ess"]), *numbers)
    return table


def leverage(ev: Evaluation, widest: int) -> Table:
    """Return the table of how estimates move without the largest weights."""
    table = Table(**LOOK)
    table.add_column("policy", overflow="fold", max_width=widest)
    table.add_column("estimator", style="bold", no_wrap=True)
    heads = {
        "value": "value",
        "concentration": "concentration",
        "without_largest": "without the largest",
        "without_ten": "without ten",
        "capped": "capped",
    }
    for head in heads.values():
        table.add_column(head, justify="right", no_wrap=True)
    number = rounding(ev)
    for row in ev.leverage.iter_rows(named=True):
        share = NONE if row["concentration"] is None else f"{row['concentration']:.1%}"
        numbers = (share if name == "concentration" else number(row[name]) for name in heads)
        table.add_row(cell(row["policy"]), row["estimator"], *numbers)
    return table
