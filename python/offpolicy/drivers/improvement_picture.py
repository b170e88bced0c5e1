"""The picture of a safe improvement: one row per candidate, with a bar from its score to its gain or value.

Only a bar that lies wholly to the right of the behaviour policy's line is evidence for its candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import altair as alt
import polars as pl

from offpolicy.evaluation.plan import BEHAVIOR
from offpolicy.figures import axis

WIDTH, ROW = 560, 14
INK, FAINT, PLAIN, CHOSEN = "#333333", "#bbbbbb", "#7c9cb8", "#c2410c"
TOOLTIP = ("candidate", "value", "std_error", "gain", "gain_error", "score", "episodes", "ess", "verdict", "reason")


@dataclass(frozen=True)
class Choice:
    """The parts of an improvement that are drawn; `enough` are the levels of verdicts that a winner may have."""

    candidates: pl.DataFrame
    winner: str
    estimator: str
    bound: str
    against: str
    require: str
    enough: tuple[str, ...]
    threshold: float
    highest: dict[str, Any] | None
    behavior_value: float
    behavior_bound: float | None


def picture(result: Choice) -> alt.LayerChart:
    """Draw the candidates in their order: the winner in colour, barred ones pale, and a ring for one without score."""
    low, high, cut = limits(result)
    barred = pl.col("score").is_not_null() & ~pl.col("verdict").is_in(result.enough)
    rows = result.candidates.with_columns(winner=pl.col("candidate") == result.winner, barred=barred)
    scale = alt.Scale(domain=[low, high], nice=False, zero=False)
    charts = alt.layer(*_behavior(result, scale), *_candidates(rows, result, scale))
    said = [
        f"{rows.height} candidates by {result.estimator}: a bar from the score, {result.bound}, to the {shown(result)}"
    ]
    said += [f"pale bars have a verdict worse than {result.require}"] if rows["barred"].any() else []
    said += ["bars that reach beyond the axis are cut"] if cut else []
    said += [f"a ring is a {shown(result)} without a score"] if rows["score"].null_count() else []
    title = alt.TitleParams(
        f"Safe improvement: {taken(result)}",
        subtitle=said,
        anchor="start",
        frame="group",
        fontSize=16,
        subtitleFontSize=12,
        offset=24,
    )
    whole: alt.LayerChart = (
        charts.properties(width=WIDTH, height=alt.Step(ROW), title=title)
        .configure(font="Helvetica Neue, Arial, sans-serif", background="white", padding=14)
        .configure_view(stroke=FAINT)
        .configure_axis(gridColor="#eeeeee", labelColor=INK, titleColor=INK, titleFontWeight="normal", titleFontSize=12)
    )
    return whole


def taken(result: Choice) -> str:
    """Return the conclusion in a few words."""
    if result.winner == BEHAVIOR:
        return "the behaviour policy stays"
    return f"{result.winner} is taken"


def shown(result: Choice) -> str:
    """Return the column that scores bound."""
    return "gain" if result.against == "difference" else "value"


def limits(result: Choice) -> tuple[float, float, bool]:
    """Return the ends of the axis and whether bars reach beyond it: extreme candidates must not hide the others."""
    middle = shown(result)
    best = result.highest or {}
    own = [result.threshold, best.get(middle), best.get("score")]
    own += [result.behavior_bound] if result.against == "value" else []
    return axis.limits([*result.candidates[middle], *result.candidates["score"]], own)


def _behavior(result: Choice, scale: alt.Scale) -> list[Any]:
    """Return the charts of the line that a score must pass."""
    middle = shown(result)
    text = f"behaviour policy, value {result.behavior_value:.4g}"
    at = alt.Chart(pl.DataFrame({middle: [result.threshold], "text": [text]}))
    x = alt.X(f"{middle}:Q", scale=scale)
    return [
        at.mark_rule(color=INK, strokeDash=[5, 4]).encode(x),
        at.mark_text(color=INK, baseline="bottom", dy=-5).encode(x, text="text:N", y=alt.value(0)),
    ]


def _candidates(rows: pl.DataFrame, result: Choice, scale: alt.Scale) -> list[Any]:
    chosen = alt.when("datum.winner").then(alt.value(CHOSEN))
    colour = chosen.when("datum.barred").then(alt.value(FAINT)).otherwise(alt.value(PLAIN))
    middle = shown(result)
    over = " over the behaviour policy" if middle == "gain" else ""
    value = alt.X(f"{middle}:Q", scale=scale, title=f"{middle}{over} by {result.estimator}")
    name = alt.Y("candidate:N", title=None, sort=rows["candidate"].to_list(), axis=alt.Axis(labelLimit=280))
    tooltip = [alt.Tooltip(f"{column}:N") for column in TOOLTIP]
    every = alt.Chart(rows).encode(name, tooltip=tooltip)
    scored = every.transform_filter("isValid(datum.score)")
    unscored = every.transform_filter(f"!isValid(datum.score) && isValid(datum.{middle})")
    ends = alt.X("score:Q", scale=scale)
    return [
        scored.mark_bar(height=3, opacity=0.55, clip=True).encode(value, alt.X2("score"), color=colour),
        scored.mark_tick(height=9, thickness=2, clip=True).encode(ends, color=colour),
        scored.mark_point(size=34, filled=True, opacity=1, clip=True).encode(value, color=colour),
        unscored.mark_point(size=34, color=FAINT, clip=True).encode(value),
    ]
