"""Figures in the form of the paper's, by Altair."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from offpolicy._util.optional import imported

#: The paper's names and their colours and marks.
LOOKS: Mapping[str, tuple[str, str, str]] = {
    "step-is": ("IS", "#1f77b4", "circle"),
    "step-wis": ("WIS", "#2ca02c", "square"),
    "reg": ("REG", "#7f7f7f", "triangle-down"),
    "dr-bsl": ("DR-bsl", "#9467bd", "triangle-up"),
    "dr": ("DR", "#d62728", "cross"),
    "dr 2-fold": ("2-fold DR", "#0b6e75", "diamond"),
    "dr-v2": ("DR-v2", "#ff7f0e", "diamond"),
}
#: Colours of estimators that the paper does not have.
OTHERS = ("#8c564b", "#e377c2", "#bcbd22", "#17becf", "#000000")
#: What DR-bsl with c = R_min is to safe improvement.
SECOND_READING = "IS of r − R_min"
#: Panels of safe improvement: good and bad candidates, by the paper's rule and by the paired one.
CANDIDATES: Mapping[str, str] = {"maximize": "π_train maximises", "minimize": "π_train minimises"}
RULES: Mapping[str, str] = {"value": "V − Cσ above V(π0)", "difference": "D − Cσ_D above 0"}
#: Of the cautions, from none to much.
DASHES = ([1, 0], [6, 3], [2, 2])
#: Heights do not end at a number of the axis, which would lift the title of its panel above the others.
HEIGHTS: Mapping[str, Any] = {"nice": False, "padding": 12}
#: Error bars: so many Monte-Carlo errors to each side.
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
    """log10 of an RMSE over a column: a line an estimator, with error bars; a panel a value of `panels`.

    An estimator that has one place alone gets a dashed line at its height, from side to side. `dodged` places what
    belongs to one x side by side; places are evenly spread then, whatever the numbers. `by_id` calls estimators by
    their ids; the paper's names are those of its own figures, where "IS" is `step-is`.
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
    return chart.properties(title=_heading(title, subtitle))


def gains_over_size(numbers: pl.DataFrame, title: str, subtitle: str = "") -> Any:
    """The gain over |D|: a panel for good and for bad candidates by each rule, a colour an estimator, a dash a caution.

    Series that lie on each other all show: one that is drawn earlier is wider.
    """
    alt = imported("altair", "plot", "draw a figure")
    shown = numbers["estimator"].unique(maintain_order=True).to_list()
    names, colours, marks = zip(*(gain_look(name) for name in shown), strict=True)
    cautions = [f"C = {caution:g}" for caution in numbers["caution"]]
    data = numbers.with_columns(
        pl.col("estimator").replace(dict(zip(shown, names, strict=True))),
        pl.format("{}, {}", pl.col("panel").replace(CANDIDATES), pl.col("rule").replace(RULES)).alias("panel"),
        pl.Series("C", cautions),
        (pl.col("gain") - BARS * pl.col("gain_error")).alias("low"),
        (pl.col("gain") + BARS * pl.col("gain_error")).alias("high"),
    )
    sizes = numbers["size"].unique(maintain_order=True).to_list()
    base = alt.Chart(data).encode(
        x=alt.X(
            "size:Q", title="|D|", scale=alt.Scale(type="log", nice=False, padding=15), axis=alt.Axis(values=sizes)
        ),
        y=alt.Y(
            "gain:Q",
            title="V of the recommended policy − V(π0)",
            scale=alt.Scale(**HEIGHTS),
            axis=alt.Axis(labelBound=True),
        ),
        color=alt.Color("estimator:N", title=None, sort=names, scale=alt.Scale(domain=names, range=colours)),
    )
    dashes = alt.StrokeDash(
        "C:N",
        title=None,
        scale=alt.Scale(domain=list(dict.fromkeys(cautions)), range=DASHES),
        legend=alt.Legend(symbolType="stroke", symbolSize=900, symbolStrokeWidth=1.5, symbolStrokeColor="black"),
    )
    ranks = range(len(names), 0, -1)
    widths = alt.Scale(domain=names, range=[1.2 * rank for rank in ranks])
    areas = alt.Scale(domain=names, range=[50 * rank - 25 for rank in ranks])
    lines = base.mark_line().encode(
        strokeDash=dashes, strokeWidth=alt.StrokeWidth("estimator:N", title=None, sort=names, scale=widths)
    )
    points = base.mark_point(filled=True).encode(
        shape=alt.Shape("estimator:N", title=None, sort=names, scale=alt.Scale(domain=names, range=marks)),
        size=alt.Size("estimator:N", title=None, sort=names, scale=areas),
        detail="C:N",
    )
    bars = base.mark_rule().encode(y=alt.Y("low:Q"), y2="high:Q")
    chart = alt.layer(lines, bars, points).properties(width=380, height=320)
    header = alt.Header(title=None, labelFontSize=12)
    panels = data["panel"].unique(maintain_order=True).to_list()
    faceted = chart.facet(facet=alt.Facet("panel:N", header=header, title=None, sort=panels), columns=len(CANDIDATES))
    return faceted.resolve_scale(y="independent").properties(title=_heading(title, subtitle))


def gain_look(estimator: str) -> tuple[str, str, str]:
    """Name, colour and mark of an estimator where gains are shown.

    >>> gain_look("dr")[0], gain_look("dr-bsl")[0]
    ('DR', 'IS of r − R_min')
    """
    name, colour, mark = LOOKS[estimator]
    return (SECOND_READING if estimator == "dr-bsl" else name), colour, mark


def in_words(described: str) -> str:
    """Return what a result calls a domain, for a reader who knows no Python.

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
    """Return the estimators that have one place where others have several."""
    places = numbers.group_by("estimator", maintain_order=True).agg(pl.col(x).n_unique())
    several = numbers[x].n_unique() > 1
    return places.filter(pl.col(x) == 1)["estimator"].to_list() if several and places.height > 1 else []


def _heading(title: str, subtitle: str) -> Any:
    alt = imported("altair", "plot", "draw a figure")
    if not subtitle:
        return title
    return alt.Title(title, subtitle=in_words(subtitle), subtitleColor="#666666", subtitleFontSize=10, anchor="start")


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
