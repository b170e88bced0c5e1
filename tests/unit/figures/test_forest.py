"""What a forest plot shows is what the evaluation says."""

import offpolicy as op
import polars as pl
import pytest
from offpolicy.figures import forest

HOSTILE = "</script><script>alert(1)</script>\x1b[31m\nnext"
LOG = op.demo_log(episodes=300).with_columns(
    far=pl.when(pl.col("target_prob") > 0.5).then(0.99).otherwise(0.01),
)
NEAR = op.PolicyColumns(target_prob="target_prob", q_hat="q_hat", v_hat="v_hat")
FAR = op.PolicyColumns(target_prob="far")


@pytest.fixture(scope="module")
def demo():
    return op.evaluate(op.demo_log(), discount=0.9)


def rows_of(figure):
    (rows,) = figure.to_dict()["datasets"].values()
    return rows


def layers_of(figure):
    return figure.to_dict()["spec"]["layer"]


def test_its_rows_are_those_of_the_table(demo):
    rows = rows_of(demo.figure("forest"))
    assert [{name: row[name] for name in demo.table.columns} for row in rows] == demo.table.to_dicts()


def test_every_row_has_the_verdict_on_its_estimate(demo):
    rows = rows_of(demo.figure("forest"))
    said = {(row["policy"], row["estimator"]): row["verdict"] for row in rows}
    assert said.pop(("behavior", "mc")) == "observed"
    assert said == {each.key: demo.verdict_on(each).level for each in demo.estimates if each.policy != "behavior"}
    assert set(said.values()) == {"reliable", "fragile"}


def test_the_title_is_the_verdict_in_words(demo):
    title = demo.figure("forest").to_dict()["title"]
    assert title["text"] == f"Verdict: {demo.verdict.level}" == "Verdict: reliable"
    words = " ".join(title["subtitle"]).lower()
    assert demo.verdict.rule.lower() in words
    assert f"next: {demo.verdict.advice}".lower() in words
    assert title["subtitle"][-1].startswith("2,000 episodes · 95% intervals")


def test_marks_of_interval_and_value_are_where_the_numbers_are(demo):
    _, interval, value, *_ = layers_of(demo.figure("forest"))
    assert (interval["mark"]["type"], value["mark"]["type"]) == ("rule", "point")
    assert [interval["encoding"][channel]["field"] for channel in ("x", "x2", "y")] == ["low", "high", "estimator"]
    assert [value["encoding"][channel]["field"] for channel in ("x", "y")] == ["value", "estimator"]


def test_verdicts_differ_in_colour_and_in_shape_and_stand_there_as_words(demo):
    _, _, value, *texts = layers_of(demo.figure("forest"))
    colour, shape = (value["encoding"][channel] for channel in ("color", "shape"))
    assert colour["field"] == shape["field"] == "verdict"
    assert colour["scale"]["domain"] == shape["scale"]["domain"] == ["observed", "reliable", "fragile"]
    for part in (0, 1):
        assert len({mark[part] for mark in forest.MARKS.values()}) == 4
    assert [text["encoding"]["text"]["field"] for text in texts] == ["written", "interval", "verdict"]


def test_the_line_is_the_value_of_the_behaviour_policy(demo):
    figure = demo.figure("forest")
    line = layers_of(figure)[0]
    assert (line["mark"]["type"], line["encoding"]["x"]["field"]) == ("rule", "reference")
    assert {row["reference"] for row in rows_of(figure)} == {demo["mc"].value}


def test_without_mc_there_is_no_line():
    figure = op.evaluate(LOG, discount=0.9, estimators=["dr"]).figure("forest")
    assert {row["reference"] for row in rows_of(figure)} == {None}
    assert "dashed" not in figure.to_dict()["title"]["subtitle"][-1]


def test_numbers_are_written_with_the_digits_that_the_axis_can_show(demo):
    written = {row["estimator"]: (row["written"], row["interval"]) for row in rows_of(demo.figure("forest"))}
    assert written["mc"] == ("2.747", "[2.684, 2.810]")
    assert written["magic"] == ("2.984", "no interval")


def test_policies_are_panels_in_their_order():
    ev = op.evaluate(LOG, discount=0.9, policies={"near": NEAR, "far": FAR})
    spec = ev.figure("forest").to_dict()
    assert spec["facet"]["row"]["field"] == "policy"
    assert spec["facet"]["row"]["sort"] == ["behavior", "near", "far"]
    assert spec["title"]["text"] == "Verdict: unusable"


def test_names_of_policies_are_no_code_and_can_be_drawn(tmp_path):
    names = [HOSTILE, "x" * 100_000, "x" * 100_001]
    ev = op.evaluate(LOG, discount=0.9, policies=dict.fromkeys(names, FAR), estimators=["step-is"])
    figure = ev.figure("forest")
    assert rows_of(figure)[0]["policy"] == r"</script><script>alert(1)</script>\x1b[31m\nnext"
    assert len({row["policy"] for row in rows_of(figure)}) == 3
    for kind in ("svg", "html"):
        figure.save(tmp_path / f"forest.{kind}")
        text = (tmp_path / f"forest.{kind}").read_text()
        assert "<script>alert" not in text
        assert "\x1b" not in text


def test_one_extreme_estimate_does_not_hide_the_others():
    wild = LOG.with_columns(q_hat=pl.col("q_hat") * 1e9, v_hat=pl.col("v_hat") * 1e9)
    figure = op.evaluate(wild, discount=0.9, estimators=["mc", "step-is", "wis", "step-wis", "reg"]).figure("forest")
    low, high = layers_of(figure)[2]["encoding"]["x"]["scale"]["domain"]
    assert 0 < low < high < 10
    assert "cut" in figure.to_dict()["title"]["subtitle"][-1]


@pytest.mark.parametrize("episodes", [1, 2])
def test_a_log_too_small_for_intervals_is_drawn(episodes, tmp_path):
    figure = op.evaluate(op.demo_log(episodes=episodes), discount=0.9).figure("forest")
    figure.save(tmp_path / "forest.png")
    assert (tmp_path / "forest.png").read_bytes()[1:4] == b"PNG"
    assert {row["interval"] for row in rows_of(figure) if row["high"] is None} == {"no interval"}


def test_numbers_near_the_end_of_the_floats_are_drawn():
    huge = LOG.with_columns(reward=pl.when(pl.col("episode") == 3).then(1e307).otherwise(-1e307))
    figure = op.evaluate(huge, discount=0.9, estimators=["mc", "step-is"]).figure("forest")
    assert "NaN" not in figure._repr_svg_()
