"""A picture of one episode: the boat's route over the lake, with the wind at every step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from offpolicy.errors import OffPolicyError

from offpolicy_sailing.wind import DIRECTIONS, DX, DY, NAMES

if TYPE_CHECKING:
    import altair as alt

    from offpolicy_sailing.domain import Sailing

WATER, CELLS, INK, QUIET, START, GOAL = "#eef5fa", "#e2edf5", "#22313f", "#5b7c99", "#2a9d5c", "#d1495b"
SIDE = 520
#: The offset in cells of a place that is visited again, so that both visits are visible.
ASIDE = 0.16


def route(domain: Sailing, log: pl.DataFrame, episode: Any) -> alt.LayerChart | alt.FacetChart:
    """Draw the route; this needs the extra `plot`."""
    try:
        import altair as alt
    except ImportError:
        raise OffPolicyError("plots need altair: install it with `pip install 'offpolicy[plot]'`") from None
    steps = _steps(domain, log, episode)
    last, far = int(steps["step"][-1]), domain.size - 1
    spots = pl.DataFrame({"x": [steps["x"][0], far], "y": [steps["y"][0], far], "what": ["start", "goal"]})

    axis = alt.Axis(
        values=list(range(domain.size)), grid=False, ticks=False, domain=False, labelColor=QUIET, title=None
    )
    scale = alt.Scale(domain=[-0.6, far + 0.6], nice=False, zero=False)
    at = {"x": alt.X("x:Q", axis=axis, scale=scale), "y": alt.Y("y:Q", axis=axis, scale=scale)}
    told = [alt.Tooltip(name) for name in ("step", "heading", "wind", "cost")]

    cell = 0.94 * SIDE / (domain.size + 0.2)
    cells = alt.Chart(_places(domain.size)).mark_square(size=cell**2, color=CELLS, opacity=1).encode(**at)
    shades = alt.Scale(scheme="plasma", domain=[0, 1.15 * max(last, 1)])  # without the palest yellow
    legend = alt.Legend(title="step", gradientLength=160, tickCount=4, format="d")
    legs = alt.Chart(steps).mark_rule(strokeWidth=4.5, strokeCap="round", opacity=0.8)
    legs = legs.encode(**at, x2="x2:Q", y2="y2:Q", color=alt.Color("step:Q", scale=shades, legend=legend), tooltip=told)
    names = ["start", "goal"]
    marks = alt.Chart(spots).mark_point(size=700, filled=True, opacity=1, stroke="white", strokeWidth=2)
    marks = marks.encode(
        **at,
        fill=alt.Fill("what:N", scale=alt.Scale(domain=names, range=[START, GOAL]), legend=None),
        shape=alt.Shape("what:N", scale=alt.Scale(domain=names, range=["circle", "diamond"]), legend=None),
    )
    labels = alt.Chart(spots).mark_text(dy=26, fontSize=12, fontWeight="bold", color=INK).encode(**at, text="what:N")
    turn = alt.Angle("degrees:Q", scale=alt.Scale(domain=[0, 360], range=[0, 360]), legend=None)
    arrows = alt.Chart(steps).mark_point(shape="arrow", size=750, filled=True, opacity=1, color=INK, stroke="white")
    return alt.layer(
        cells,
        legs,
        marks,
        labels,
        arrows.encode(**at, angle=turn, tooltip=told),
        width=SIDE,
        height=SIDE,
        title=_title(steps, episode),
        config={
            "view": {"fill": WATER, "stroke": None, "cornerRadius": 6},
            "title": {
                "anchor": "start",
                "fontSize": 17,
                "color": INK,
                "subtitleColor": QUIET,
                "subtitleFontSize": 12,
                "offset": 12,
            },
        },
    )


def _steps(domain: Sailing, log: pl.DataFrame, episode: Any) -> pl.DataFrame:
    """Return one row per step: from (x, y) to (x2, y2), the wind in degrees, the cost."""
    rows = log.filter(pl.col("episode") == episode).sort("step")
    if rows.is_empty():
        raise OffPolicyError(f"the log has no episode {episode!r} to draw")
    states = rows.select(domain.state_columns).to_numpy()
    actions = rows["action"].to_numpy()
    toward = domain.toward(states)
    way = np.concatenate([states[:, :2], states[-1:, :2] + [[DX[actions[-1]], DY[actions[-1]]]]])
    x, y = _apart(way).T
    return pl.DataFrame(
        {
            "step": rows["step"],
            "x": x[:-1],
            "y": y[:-1],
            "x2": x[1:],
            "y2": y[1:],
            "heading": [NAMES[a] for a in actions],
            "wind": [NAMES[w] for w in toward],
            "degrees": toward * (360 / DIRECTIONS),
            "cost": -rows["reward"],
        }
    )


def _apart(way: np.ndarray) -> np.ndarray:
    """Return the places, with repeated visits moved slightly aside on a spiral."""
    _, place = np.unique(way, axis=0, return_inverse=True)
    visits: dict[int, int] = {}
    moved = way.astype(float)
    for i, p in enumerate(place.ravel().tolist()):
        again = visits[p] = visits.get(p, -1) + 1
        turn = 2.4 * again  # the golden angle in radians, so that no two visits lie on one ray
        moved[i] += ASIDE * np.sqrt(again) * np.array([np.cos(turn), np.sin(turn)])
    return moved


def _places(size: int) -> pl.DataFrame:
    x, y = np.divmod(np.arange(size**2), size)
    return pl.DataFrame({"x": x, "y": y})


def _title(steps: pl.DataFrame, episode: Any) -> dict[str, Any]:
    return {
        "text": f"Sailing, episode {episode}: cost {steps['cost'].sum():.2f} in {steps.height} steps",
        "subtitle": "The line is the boat's way, arrows show where the wind blows when it leaves a place.",
    }
