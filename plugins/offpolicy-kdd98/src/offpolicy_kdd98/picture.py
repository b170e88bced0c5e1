"""A picture of a donor's 22 campaigns, with mailings, gifts and the five features before each campaign."""

from __future__ import annotations

from typing import Any

import polars as pl
from offpolicy.errors import OffPolicyError, UsageError

from offpolicy_kdd98.campaigns import ACTIONS, FEATURES

WIDTH = 640
INK, MUTED, GRID = "#22313f", "#8795a1", "#e8ecef"
GIFT, GIVING, CONTACT = "#d1495b", "#00798c", "#edae49"
TITLES = {
    "recency": ("campaigns since the last gift", GIVING),
    "frequency": ("gifts so far", GIVING),
    "mean_gift": ("mean gift, $", GIVING),
    "contact_recency": ("campaigns since the last mailing", CONTACT),
    "contact_frequency": ("mailings so far", CONTACT),
}


def picture(log: pl.DataFrame, episode: int, notice: str) -> Any:
    """Draw one episode of a log."""
    try:
        import altair as alt
    except ImportError:
        raise OffPolicyError("a plot needs Altair: pip install 'offpolicy[plot]'") from None

    rows = log.filter(pl.col("episode") == episode).sort("step")
    if rows.is_empty():
        raise UsageError(f"the log has no episode {episode}")
    rows = rows.select(
        (pl.col("step") + 1).alias("campaign"),
        *FEATURES,
        pl.col("reward").round(2),
        pl.col("action").replace_strict(dict(enumerate(ACTIONS)), return_dtype=pl.String).alias("mailing"),
        (pl.col("action") != 0).alias("mailed"),
    )
    total, mailings = rows["reward"].sum(), rows.filter("mailed").height
    x = alt.X("campaign:O").axis(None)
    base = alt.Chart(rows).properties(width=WIDTH)
    rewards = (
        base.mark_bar(color=GIFT, cornerRadiusEnd=2)
        .encode(x=x, y=alt.Y("reward:Q").title(None), tooltip=["campaign", "mailing", "reward"])
        .properties(height=90, title=_title(alt, "reward, $"))
    )
    letters = (
        base.transform_filter("datum.mailed")
        .mark_text(font="monospace", fontSize=11, fontWeight="bold", color=INK)
        .encode(x=x, text="mailing:N")
    )
    silence = base.transform_filter("!datum.mailed").mark_text(text="·", fontSize=16, color=MUTED).encode(x=x)
    mail = (letters + silence).properties(height=18)
    tops = {name: max(int(rows[name].max()), 1) for name in FEATURES}  # type: ignore[arg-type]
    features = [_feature(alt, base, name, tops[name], last=name == FEATURES[-1]) for name in FEATURES]
    return (
        alt.vconcat(rewards, mail, *features, spacing=10)
        .properties(
            title=alt.TitleParams(
                f"Donor {episode}: ${total:,.2f} from {mailings} mailings in {rows.height} campaigns",
                subtitle=notice,
                anchor="start",
                fontSize=16,
                subtitleFontSize=12,
                subtitleColor=MUTED,
                color=INK,
                offset=14,
            )
        )
        .configure_view(stroke=None)
        .configure_axisY(minExtent=28)
        .configure_axis(
            gridColor=GRID, domain=False, ticks=False, labelColor=MUTED, titleColor=INK, titleFontWeight="normal"
        )
    )


def _feature(alt: Any, base: Any, name: str, top: int, last: bool) -> Any:
    title, color = TITLES[name]
    axis = alt.Axis(labelAngle=0, title="campaign", grid=False) if last else None
    return (
        base.mark_area(interpolate="step", line={"color": color, "strokeWidth": 1.5}, color=color, fillOpacity=0.18)
        .encode(
            x=alt.X("campaign:O").axis(axis),
            y=alt.Y(f"{name}:Q").title(None).axis(values=[0, top], format="d").scale(domain=[0, top], nice=False),
            tooltip=["campaign", name],
        )
        .properties(height=46, title=_title(alt, title))
    )


def _title(alt: Any, text: str) -> Any:
    return alt.TitleParams(text, anchor="start", frame="group", fontSize=11, fontWeight="normal", color=INK)
