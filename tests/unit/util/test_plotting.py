"""Pictures in files."""

import altair as alt
import polars as pl
from offpolicy._util import plotting


def test_no_name_in_the_data_ends_the_script_of_a_page(tmp_path):
    name = "</script><script>alert(1)</script>"
    chart = alt.Chart(pl.DataFrame({"name": [name]})).mark_point().encode(x="name:N")
    plotting.save(chart, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<script>alert" not in page
    assert r"\u003c/script>\u003cscript>alert(1)" in page
