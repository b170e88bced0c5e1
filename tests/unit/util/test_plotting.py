"""Pictures in files."""

import importlib.util
import sys
from pathlib import Path

import altair as alt
import offpolicy as op
import polars as pl
import pytest
from offpolicy._util import plotting


def test_no_name_in_the_data_ends_the_script_of_a_page(tmp_path):
    name = "</script><script>alert(1)</script>"
    chart = alt.Chart(pl.DataFrame({"name": [name]})).mark_point().encode(x="name:N")
    plotting.save(chart, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<script>alert" not in page
    assert r"\u003c/script>\u003cscript>alert(1)" in page


@pytest.mark.parametrize("missing", ["altair", "vl_convert"])
def test_a_picture_and_a_figure_ask_for_the_extra_in_the_same_words(missing, monkeypatch):
    evaluation = op.evaluate(op.demo_log(episodes=20), estimators=["mc"])
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else found(name))
    with pytest.raises(op.OffPolicyError) as of_picture:
        plotting.picture_format(Path("a.svg"))
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(op.OffPolicyError) as of_figure:
        evaluation.figure("forest")
    assert str(of_picture.value) == str(of_figure.value)
    assert str(of_figure.value) == "to draw a figure, install the extra 'plot': pip install 'offpolicy[plot]'"
    assert of_picture.value.kind == of_figure.value.kind == "missing-extra"
