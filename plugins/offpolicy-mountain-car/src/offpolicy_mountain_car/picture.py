"""A picture of an episode, with the car in its state space and on the hill y = sin 3x.

In both parts colour shows the time and shape shows the push.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import polars as pl
from offpolicy import OffPolicyError

from offpolicy_mountain_car.domain import GOAL, LEFT_WALL, TOP_SPEED

WIDTH = 560
SHAPES = {"left": "triangle-left", "coast": "circle", "right": "triangle-right"}
INK, FAINT, HILL = "#333333", "#bbbbbb", "#e6e2da"
MARGIN = 0.03
LOW, HIGH = -1.2, 1.3


def picture(log: pl.DataFrame, episode: int, pushes: Sequence[str]) -> alt.VConcatChart:
    """Draw the phase plot above the hill with a common axis of positions; `pushes` are the names of the actions."""
    steps = log.filter(pl.col("episode") == episode).sort("step")
    if not steps.height:
        raise OffPolicyError(f"the log has no episode {episode}")
    steps = steps.with_columns(
        push=pl.col("action").replace_strict(dict(enumerate(pushes)), return_dtype=pl.String),
        height=(3 * pl.col("x")).sin(),
        next_height=(3 * pl.col("next_x")).sin(),
    )
    ending = "reaches the goal" if steps["terminal"][-1] else "has not reached the goal"
    title = alt.TitleParams(
        f"Mountain Car: an episode that {ending}",
        subtitle=f"episode {episode}, {steps.height} steps",
        anchor="start",
        fontSize=16,
        subtitleFontSize=12,
        offset=14,
    )
    charts: alt.VConcatChart = (
        alt.vconcat(_phase(steps), _hill(steps), spacing=16, title=title)
        .configure(font="Helvetica Neue, Arial, sans-serif", background="white", padding=14)
        .configure_view(stroke=FAINT)
        .configure_axis(gridColor="#eeeeee", labelColor=INK, titleColor=INK, titleFontWeight="normal", titleFontSize=12)
        .configure_legend(labelColor=INK, titleColor=INK, titleFontWeight="normal", symbolFillColor=INK)
    )
    return charts


def _phase(steps: pl.DataFrame) -> Any:
    limit = TOP_SPEED * 1.05
    speed = alt.Scale(domain=[-limit, limit], nice=False)
    zero = alt.Chart(pl.DataFrame({"v": [0.0]})).mark_rule(color=FAINT).encode(y="v:Q")
    y = alt.Y("v:Q", title="velocity v, per inner step", scale=speed)
    return alt.layer(
        zero,
        _goal(),
        alt.Chart(pl.DataFrame({"x": [GOAL], "v": [-limit], "text": ["goal"]}))
        .mark_text(align="right", baseline="bottom", dx=-6, dy=-6, color=INK)
        .encode(_position(), y, text="text:N"),
        _trail(steps, "v", "next_v", speed),
        _marks(steps, y),
        _ends(steps, "v", "next_v", speed),
    ).properties(width=WIDTH, height=300)


def _hill(steps: pl.DataFrame) -> Any:
    x = np.linspace(LEFT_WALL, GOAL, 200)
    high = alt.Scale(domain=[LOW, HIGH], nice=False)
    hill = pl.DataFrame({"x": x, "height": np.sin(3 * x), "bottom": LOW})
    y = alt.Y("height:Q", title="height, sin 3x", scale=high)
    ground = alt.Chart(hill).encode(_position(), y)
    return alt.layer(
        ground.mark_area(color=HILL).encode(alt.Y2("bottom")),
        ground.mark_line(color=INK, strokeWidth=1),
        _goal(),
        _marks(steps, y),
        _ends(steps, "height", "next_height", high),
    ).properties(width=WIDTH, height=190)


def _position(column: str = "x") -> alt.X:
    scale = alt.Scale(domain=[LEFT_WALL - MARGIN, GOAL + MARGIN], nice=False, zero=False)
    return alt.X(f"{column}:Q", title="position x", scale=scale)


def _time() -> alt.Color:
    scale = alt.Scale(scheme=alt.SchemeParams("viridis", extent=[0, 0.92]))  # without the palest yellow
    return alt.Color("step:Q", title="step", scale=scale)


def _trail(steps: pl.DataFrame, y: str, next_y: str, scale: alt.Scale) -> Any:
    """Draw one short line per step, in the colour of its time."""
    return (
        alt.Chart(steps)
        .mark_rule(strokeWidth=1.5, opacity=0.8)
        .encode(_position(), alt.Y(f"{y}:Q", scale=scale), alt.X2("next_x"), alt.Y2(next_y), _time())
    )


def _marks(steps: pl.DataFrame, y: alt.Y) -> Any:
    """Draw one mark per step, in the shape of its push."""
    names = [name for name in SHAPES if name in steps["push"].unique()]
    shape = alt.Scale(domain=names, range=[SHAPES[name] for name in names])
    tooltip: list[Any] = [
        alt.Tooltip("step:Q"),
        alt.Tooltip("push:N"),
        alt.Tooltip("x:Q", format=".3f"),
        alt.Tooltip("v:Q", format=".4f"),
    ]
    return (
        alt.Chart(steps)
        .mark_point(size=55, filled=True, opacity=0.9)
        .encode(_position(), y, _time(), alt.Shape("push:N", title="push", scale=shape), tooltip=tooltip)
    )


def _goal() -> Any:
    there = alt.Chart(pl.DataFrame({"x": [GOAL]})).encode(_position())
    return there.mark_rule(strokeDash=[5, 4], color=INK)


def _ends(steps: pl.DataFrame, y: str, next_y: str, scale: alt.Scale) -> Any:
    """Draw rings at the car's first and last position."""
    ends = pl.DataFrame(
        {
            "x": [steps["x"][0], steps["next_x"][-1]],
            "y": [steps[y][0], steps[next_y][-1]],
            "end": ["start", "end"],
        }
    )
    there = alt.Chart(ends).encode(_position(), alt.Y("y:Q", scale=scale))
    rings = there.mark_point(size=170, color=INK, strokeWidth=1.5, shape="circle")
    names = there.mark_text(align="right", dx=-9, dy=-12, fontWeight="bold", color=INK).encode(text="end:N")
    return rings + names
