"""The figure of safe improvement, in the form of the paper's Fig. 4, by Altair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from offpolicy.experiments.figures import BARS, HEIGHTS, LOOKS, heading

#: The name of DR-bsl with c = R_min in safe improvement.
SECOND_READING = "IS of r − R_min"
#: The panels of safe improvement: good and bad candidates, by the paper's rule and by the paired rule.
CANDIDATES: Mapping[str, str] = {"maximize": "π_train maximises", "minimize": "π_train minimises"}
RULES: Mapping[str, str] = {"value": "V − Cσ above V(π0)", "difference": "D − Cσ_D above 0"}
#: The dashes of lines by caution, from the least to the most.
DASHES = ([1, 0], [6, 3], [2, 2])


def gains_over_size(numbers: pl.DataFrame, title: str, subtitle: str = "") -> Any:
    """Draw the gain over |D|, with one panel per kind of candidates and rule, one colour per estimator, one dash per C.

    Lines that are drawn earlier are wider, so that lines on top of each other all show.
    """
    import altair as alt

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
    return faceted.resolve_scale(y="independent").properties(title=heading(title, subtitle))


def gain_look(estimator: str) -> tuple[str, str, str]:
    """Return the name, colour and mark of an estimator in figures of gains.

    >>> gain_look("dr")[0], gain_look("dr-bsl")[0]
    ('DR', 'IS of r − R_min')
    """
    name, colour, mark = LOOKS[estimator]
    return (SECOND_READING if estimator == "dr-bsl" else name), colour, mark
