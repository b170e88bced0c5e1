"""Forest plot of an evaluation: one row per policy and estimator, with value, interval and verdict.

The verdict on a row is shown by shape, by colour and in a word, so that it stays readable in black and white and for
colour-blind readers. The dashed line is the observed value of the behaviour policy (`mc`).
"""

from __future__ import annotations

import math
import textwrap
from typing import Any

import altair as alt
import polars as pl

from offpolicy._util.plotting import drawable
from offpolicy._util.visible import visible
from offpolicy.figures.axis import limits
from offpolicy.figures.judged import JudgedTable

WIDTH, ROW = 330, 24
#: The gap between the plot and the columns of text on its right, and the width of a character.
GAP, CHARACTER = 18, 6.6
#: The largest number of characters per line under the title, and of lines.
LINE, LINES = 104, 5
INK, SOFT, FAINT = "#24292f", "#6b7280", "#e5e7eb"
#: The word in the behaviour policy's own row in place of a verdict.
OBSERVED = "observed"
#: The colour and shape of each verdict; the colours also differ in lightness.
MARKS = {
    OBSERVED: (SOFT, "square"),
    "reliable": ("#0b5fa5", "circle"),
    "fragile": ("#b45309", "diamond"),
    "unusable": ("#9f1239", "cross"),
}
FONT = "Helvetica Neue, Helvetica, Arial, sans-serif"


def draw(judged: JudgedTable) -> alt.FacetChart:
    """Draw all estimates of a table, grouped by policy, in its order."""
    rows = data(judged)
    low, high, cut = _limits(rows)
    scale = alt.Scale(domain=[low, high], nice=False, zero=False)
    policies = rows["policy"].unique(maintain_order=True).to_list()
    header = alt.Header(
        title=None,
        labelOrient="top",
        labelAnchor="start",
        labelFontSize=13,
        labelFontWeight="bold",
        labelColor=INK,
        labelLimit=2 * WIDTH,
    )
    whole: alt.FacetChart = (
        alt.layer(*_layers(rows, scale), data=rows)
        .properties(width=WIDTH, height=alt.Step(ROW))
        .facet(row=alt.Row("policy:N", sort=policies, header=header), spacing=14)
        .resolve_scale(y="independent")
        .properties(title=_title(judged, rows, cut))
        .configure(font=FONT, background="white", padding=18)
        .configure_view(stroke=None)
        .configure_axis(domain=False, ticks=False, labelColor=INK, labelFontSize=12, gridColor=FAINT)
        .configure_header(labelPadding=4)
        .configure_text(fontSize=12)
    )
    return whole


def data(judged: JudgedTable) -> pl.DataFrame:
    """Return the table with the text drawn beside each row; names are made printable."""
    verdicts = [OBSERVED if level is None else level for level in judged.levels]
    table = judged.table.with_columns(
        pl.Series("policy", [drawable(visible(name)) for name in judged.table["policy"]], pl.String),
        pl.Series("verdict", verdicts, pl.String),
    )
    digits, reference = _digits(table), next(iter(_observed(table)), None)
    intervals = [_interval(low, high, digits) for low, high in table.select("low", "high").iter_rows()]
    return table.with_columns(
        pl.Series("written", [_number(value, digits) for value in table["value"]], pl.String),
        pl.Series("interval", intervals, pl.String),
        pl.lit(reference, pl.Float64).alias("reference"),
    )


def _observed(table: pl.DataFrame) -> pl.Series:
    """Return the values of the behaviour policy's own rows."""
    return table.filter(pl.col("verdict") == OBSERVED)["value"]


def _digits(table: pl.DataFrame) -> str:
    """Return a format that resolves three digits of the axis, unless numbers are huge or tiny."""
    low, high, _ = _limits(table)
    every = pl.concat([table["value"], table["low"], table["high"]]).abs().max()
    decimals = 2 - math.floor(math.log10(high - low)) if 0 < high - low < math.inf else math.inf
    return f".{max(0, decimals)}f" if decimals <= 6 and every is not None and every < 1e6 else ".4g"  # type: ignore[operator]


def _number(value: float | None, digits: str) -> str:
    return "none" if value is None else format(value, digits).replace("-", "−")


def _interval(low: float | None, high: float | None, digits: str) -> str:
    if low is None and high is None:
        return "no interval"
    return f"[{_number(low, digits)}, {_number(high, digits)}]"


def _limits(table: pl.DataFrame) -> tuple[float, float, bool]:
    return limits([*table["value"], *table["low"], *table["high"]], _observed(table))


def _title(judged: JudgedTable, rows: pl.DataFrame, cut: bool) -> alt.TitleParams:
    """State the verdict, the rule behind it and what to do next."""
    said = [f"{judged.rule[:1].upper()}{judged.rule[1:]}."]
    said += [f"Next: {judged.advice}."] if judged.advice else []
    lines = [line for each in said for line in textwrap.wrap(visible(each), LINE, max_lines=LINES, placeholder=" …")]
    shown = [f"{judged.episodes:,} episodes", f"{100 * judged.confidence:.4g}% intervals"]
    shown += [] if rows["reference"][0] is None else ["dashed: the value of the behaviour policy"]
    shown += ["what reaches beyond the axis is cut"] if cut else []
    lines.append(" · ".join(shown))
    colour = MARKS[judged.level][0]
    return alt.TitleParams(
        f"Verdict: {judged.level}",
        subtitle=lines,
        anchor="start",
        color=colour,
        fontSize=18,
        subtitleFontSize=12,
        subtitleColor=SOFT,
        subtitlePadding=6,
        subtitleLineHeight=16,
        offset=14,
    )


def _layers(rows: pl.DataFrame, scale: alt.Scale) -> list[Any]:
    present = [verdict for verdict in MARKS if verdict in rows["verdict"].to_list()]
    colours, shapes = ([MARKS[verdict][part] for verdict in present] for part in (0, 1))
    colour = alt.Color("verdict:N", scale=alt.Scale(domain=present, range=colours), legend=None)
    shape = alt.Shape("verdict:N", scale=alt.Scale(domain=present, range=shapes), legend=None)
    name = alt.Y("estimator:N", sort=rows["estimator"].to_list(), title=None)
    value = alt.X(
        "value:Q", scale=scale, title="value of a policy", axis=alt.Axis(titleColor=SOFT, titleFontWeight="normal")
    )
    shown = alt.Chart().encode(y=name)
    written, interval, word = _columns(rows)
    return [
        alt.Chart().mark_rule(color=SOFT, strokeDash=[4, 4]).encode(x=alt.X("reference:Q", scale=scale)),
        shown.mark_rule(strokeWidth=2.5, clip=True).encode(alt.X("low:Q", scale=scale), alt.X2("high"), color=colour),
        shown.mark_point(size=95, filled=True, opacity=1, clip=True).encode(value, color=colour, shape=shape),
        shown.mark_text(align="right", color=INK).encode(text="written:N", x=alt.value(written)),
        shown.mark_text(align="left", color=SOFT).encode(text="interval:N", x=alt.value(interval)),
        shown.mark_text(align="left", fontWeight="bold").encode(text="verdict:N", x=alt.value(word), color=colour),
    ]


def _columns(rows: pl.DataFrame) -> tuple[float, float, float]:
    """Return the positions of the text columns: the end of the values, and the start of intervals and of verdicts."""
    values, intervals = (CHARACTER * int(rows[name].str.len_chars().max() or 0) for name in ("written", "interval"))  # type: ignore[arg-type]
    return WIDTH + GAP + values, WIDTH + GAP + values + 10, WIDTH + GAP + values + 10 + intervals + GAP
