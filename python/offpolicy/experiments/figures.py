"""Figures in the form of the paper's, by Altair."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import polars as pl

from offpolicy.extras import imported

#: The paper's names and their colours and marks.
LOOKS: Mapping[str, tuple[str, str, str]] = {
    "step-is": ("IS", "#1f77b4", "circle"),
    "step-wis": ("WIS", "#2ca02c", "square"),
    "reg": ("REG", "#7f7f7f", "triangle-down"),
    "dr-bsl": ("DR-bsl", "#9467bd", "triangle-up"),
    "dr": ("DR", "#d62728", "cross"),
    "dr 2-fold": ("2-fold DR", "#d62728", "diamond"),
    "dr-v2": ("DR-v2", "#ff7f0e", "diamond"),
}
#: Colours of estimators that the paper does not have.
OTHERS = ("#8c564b", "#e377c2", "#bcbd22", "#17becf", "#000000")
#: Error bars: so many Monte-Carlo errors to each side.
BARS = 2.0


def errors_over(
    numbers: pl.DataFrame,
    x: str,
    x_title: str,
    title: str,
    panels: str | None = None,
    y: str = "relative_rmse",
    y_title: str = "log10 of RMSE / true value",
) -> Any:
    """log10 of an RMSE over a column: a line an estimator, with error bars; a panel a value of `panels`."""
    alt = imported("altair", "plot", "draw a figure")
    looks = _looks(numbers["estimator"].unique(maintain_order=True).to_list())
    names, colours, marks = zip(*looks.values(), strict=True)
    data = numbers.with_columns(*_bars(y), pl.col("estimator").replace({name: look[0] for name, look in looks.items()}))
    base = alt.Chart(data).encode(
        x=alt.X(f"{x}:Q", title=x_title),
        y=alt.Y("y:Q", title=y_title, scale=alt.Scale(zero=False)),
        color=alt.Color("estimator:N", title=None, sort=names, scale=alt.Scale(domain=names, range=colours)),
    )
    marked = alt.Shape("estimator:N", title=None, sort=names, scale=alt.Scale(domain=names, range=marks))
    bars = base.mark_rule().encode(y=alt.Y("low:Q"), y2="high:Q")
    chart = alt.layer(base.mark_line(strokeWidth=1.5), bars, base.mark_point(filled=True, size=45).encode(shape=marked))
    chart = chart.properties(width=290, height=220)
    if panels is not None:
        labels = {"labelExpr": "'α = ' + datum.value"} if panels == "alpha" else {}
        header = alt.Header(title=None, labelFontSize=12, **labels)
        chart = chart.facet(facet=alt.Facet(f"{panels}:N", header=header, title=None), columns=2)
        chart = chart.resolve_scale(y="independent")
    return chart.properties(title=title)


def gains_over_size(numbers: pl.DataFrame, title: str) -> Any:
    """The gain over |D|: a panel for good and for bad candidates, a colour an estimator, a dash a caution."""
    alt = imported("altair", "plot", "draw a figure")
    shown = numbers["estimator"].unique(maintain_order=True).to_list()
    names, colours, _ = zip(*(LOOKS[name] for name in shown), strict=True)
    data = numbers.with_columns(
        pl.col("estimator").replace({name: LOOKS[name][0] for name in shown}),
        pl.col("panel").replace({"maximize": "π_train maximises", "minimize": "π_train minimises"}),
        pl.Series("C", [f"C = {caution:g}" for caution in numbers["caution"]]),
        (pl.col("gain") - BARS * pl.col("gain_error")).alias("low"),
        (pl.col("gain") + BARS * pl.col("gain_error")).alias("high"),
    )
    base = alt.Chart(data).encode(
        x=alt.X("size:Q", title="|D|", scale=alt.Scale(type="log", nice=False, padding=15)),
        y=alt.Y("gain:Q", title="V of the recommended policy − V(π0)"),
        color=alt.Color("estimator:N", title=None, scale=alt.Scale(domain=names, range=colours)),
        strokeDash=alt.StrokeDash("C:N", legend=None),
    )
    bars = base.mark_rule().encode(y=alt.Y("low:Q"), y2="high:Q", strokeDash=alt.value([1, 0]))
    points = base.mark_point(filled=True, size=40).encode(shape=alt.Shape("C:N", title=None))
    chart = alt.layer(base.mark_line(strokeWidth=1.5), bars, points).properties(width=330, height=260)
    header = alt.Header(title=None, labelFontSize=12)
    faceted = chart.facet(facet=alt.Facet("panel:N", header=header, title=None), columns=2)
    return faceted.resolve_scale(y="independent").properties(title=title)


def _logarithm(expression: pl.Expr) -> pl.Expr:
    return pl.when(expression > 0).then(expression.log(10))


def _looks(estimators: list[str]) -> dict[str, tuple[str, str, str]]:
    """The paper's, in its order; then those that it does not have."""
    known = {name: look for name, look in LOOKS.items() if name in estimators}
    others = (name for name in estimators if name not in LOOKS)
    return known | {name: (name, OTHERS[i % len(OTHERS)], "stroke") for i, name in enumerate(others)}


def _bars(rmse: str) -> list[pl.Expr]:
    """log10 of an RMSE and the ends of its error bars; an RMSE of 0 has none."""
    spread = BARS * pl.col(f"{rmse}_error") / pl.col(rmse) / math.log(10)
    middle = _logarithm(pl.col(rmse))
    return [middle.alias("y"), (middle - spread).alias("low"), (middle + spread).alias("high")]
