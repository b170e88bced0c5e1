"""Errors over a size or a rate, in the form of the paper's figures, by Altair."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from offpolicy._util.optional import imported

#: The name of each estimator in the paper, with its colour and mark.
LOOKS: Mapping[str, tuple[str, str, str]] = {
    "step-is": ("IS", "#1f77b4", "circle"),
    "step-wis": ("WIS", "#2ca02c", "square"),
    "reg": ("REG", "#7f7f7f", "triangle-down"),
    "dr-bsl": ("DR-bsl", "#9467bd", "triangle-up"),
    "dr": ("DR", "#d62728", "cross"),
    "dr 2-fold": ("2-fold DR", "#0b6e75", "diamond"),
    "dr-v2": ("DR-v2", "#ff7f0e", "diamond"),
}
#: Colours of estimators that are not in the paper.
OTHERS = ("#8c564b", "#e377c2", "#bcbd22", "#17becf", "#000000")
#: The vertical axis does not end at a labelled number, which would lift the title of its panel above the others.
HEIGHTS: Mapping[str, Any] = {"nice": False, "padding": 12}
#: The half-length of error bars in Monte-Carlo errors.
BARS = 2.0


def errors_over(
    numbers: pl.DataFrame,
    x: str,
    x_title: str,
    title: str,
    subtitle: str = "",
    panels: str | None = None,
    y: str = "relative_rmse",
    y_title: str = "log10 of RMSE / true value",
    dodged: bool = False,
    by_id: bool = False,
) -> Any:
    """Draw log10 of an RMSE over a column: one line with error bars per estimator, one panel per value of `panels`.

    An estimator with a single x gets a dashed horizontal line. `dodged` draws the estimators of one x side by side, at
    evenly spaced positions. `by_id` labels estimators with their ids instead of the names in the paper's figures, where
    "IS" is `step-is`.
    """
    alt = imported("altair", "plot", "draw a figure")
    looks = _looks(numbers["estimator"].unique(maintain_order=True).to_list())
    if by_id:
        looks = {name: (name, colour, mark) for name, (_, colour, mark) in looks.items()}
    alone = [looks[name][0] for name in _alone(numbers, x)]
    names, colours, marks = zip(*looks.values(), strict=True)
    data = numbers.with_columns(*_bars(y), pl.col("estimator").replace({name: look[0] for name, look in looks.items()}))
    place = {"x": alt.X(f"{x}:Q", title=x_title)}
    if dodged:
        level, apart = alt.Axis(labelAngle=0, grid=True), alt.Scale(paddingInner=0.6, paddingOuter=0.3)
        beside = alt.XOffset("estimator:N", sort=names, scale=alt.Scale(domain=names))
        place = {"x": alt.X(f"{x}:O", title=x_title, axis=level, scale=apart), "xOffset": beside}
    height = {
        "y": alt.Y("y:Q", title=y_title, scale=alt.Scale(zero=False, **HEIGHTS), axis=alt.Axis(labelBound=True)),
        "color": alt.Color("estimator:N", title=None, sort=names, scale=alt.Scale(domain=names, range=colours)),
    }
    base = alt.Chart(data).encode(**place, **height)
    marked = alt.Shape("estimator:N", title=None, sort=names, scale=alt.Scale(domain=names, range=marks))
    bars = base.mark_rule().encode(y=alt.Y("low:Q"), y2="high:Q")
    one_place = alt.FieldOneOfPredicate(field="estimator", oneOf=alone)
    points = base.mark_point(filled=True).encode(
        shape=marked, size=alt.condition(one_place, alt.value(100), alt.value(30)) if alone else alt.value(30)
    )
    levels = alt.Chart(data).mark_rule(strokeWidth=1.5, strokeDash=[6, 3]).encode(**height).transform_filter(one_place)
    lines = [base.mark_line(strokeWidth=1.5), bars, points]
    chart = alt.layer(*([levels] if alone else []), *lines).properties(width=290, height=220)
    if panels is not None:
        labels = {"labelExpr": "'α = ' + datum.value"} if panels == "alpha" else {}
        header = alt.Header(title=None, labelFontSize=12, **labels)
        chart = chart.facet(facet=alt.Facet(f"{panels}:N", header=header, title=None), columns=2)
        chart = chart.resolve_scale(y="independent")
    return chart.properties(title=heading(title, subtitle))


def heading(title: str, subtitle: str) -> Any:
    """Return a chart's title, with the domain in words below it if a subtitle is given."""
    alt = imported("altair", "plot", "draw a figure")
    if not subtitle:
        return title
    return alt.Title(title, subtitle=in_words(subtitle), subtitleColor="#666666", subtitleFontSize=10, anchor="start")


def in_words(described: str) -> str:
    """Turn the Python expression of a domain into words.

    >>> in_words("MountainCar(substeps=4, start='uniform')"), in_words("Kdd98(path=None, net=False)"), in_words("coin")
    ('Mountain Car: substeps 4, start uniform', 'Kdd98: no net', 'coin')
    """
    found = re.fullmatch(r"(\w+)\((.*)\)", described)
    if found is None:
        return described
    name, options = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", found[1]), []
    for option, value in re.findall(r"(\w+)=([^,()]+|\([^()]*\))", found[2]):
        words, value = option.replace("_", " "), value.strip("'\"")
        said = {"None": "", "True": words, "False": f"no {words}"}.get(value, f"{words} {value}")
        options += [said] if said else []
    return f"{name}: {', '.join(options)}" if options else name


def _alone(numbers: pl.DataFrame, x: str) -> list[str]:
    """Return the estimators with a single x, if others have several."""
    places = numbers.group_by("estimator", maintain_order=True).agg(pl.col(x).n_unique())
    several = numbers[x].n_unique() > 1
    return places.filter(pl.col(x) == 1)["estimator"].to_list() if several and places.height > 1 else []


def _logarithm(expression: pl.Expr) -> pl.Expr:
    return pl.when(expression > 0).then(expression.log(10))


def _looks(estimators: list[str]) -> dict[str, tuple[str, str, str]]:
    """Return the looks of estimators, those of the paper first and in its order."""
    known = {name: look for name, look in LOOKS.items() if name in estimators}
    others = (name for name in estimators if name not in LOOKS)
    return known | {name: (name, OTHERS[i % len(OTHERS)], "stroke") for i, name in enumerate(others)}


def _bars(rmse: str) -> list[pl.Expr]:
    """Return log10 of an RMSE and the ends of its error bars; an RMSE of 0 has none of them."""
    spread = BARS * pl.col(f"{rmse}_error") / pl.col(rmse) / math.log(10)
    middle = _logarithm(pl.col(rmse))
    return [middle.alias("y"), (middle - spread).alias("low"), (middle + spread).alias("high")]
