"""The paper's figures show the numbers of the runs: panels, series, places, heights and error bars."""

import math
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from charts import Drawn
from offpolicy_paper import studies
from offpolicy_paper.errors import Errors
from offpolicy_paper.safe_improvement import CAUTIONS, ESTIMATORS, PANELS, RULES, Gains

SIZES, TOTAL, ALPHAS = (10, 50, 90), 100, (0.0, 0.25, 0.5, 0.75)
SPLIT, WHOLE = ("step-is", "step-wis", "dr", "dr-bsl", "reg"), ("step-is", "step-wis", "dr-bsl")
LEGEND = {"IS": "step-is", "WIS": "step-wis", "REG": "reg", "DR-bsl": "dr-bsl", "DR": "dr", "2-fold DR": "two-fold"}


def split_runs(count=40):
    rng = np.random.default_rng(3)

    def noisy(scale):
        return (-20 + scale * rng.normal(size=len(ALPHAS))).tolist()

    return [
        {
            "estimates": {name: [noisy(1 + i + s) for s in range(3)] for i, name in enumerate(SPLIT)},
            "on_all": {name: noisy(2.0) for name in WHOLE},
            "two_fold_dr": noisy(0.5),
            "truth": [-20.0, -21.0, -22.0, -23.0],
            "truth_error": [0.1] * 4,
        }
        for _ in range(count)
    ]


def by_hand(runs):
    """log10 of the relative RMSE and of its error bar of two Monte-Carlo errors, by estimator, size and α."""
    found = {}
    for k, alpha in enumerate(ALPHAS):
        series = {(name, size): [run["estimates"][name][s][k] for run in runs]
                  for name in SPLIT for s, size in enumerate(SIZES)}  # fmt: skip
        series |= {(name, TOTAL): [run["on_all"][name][k] for run in runs] for name in WHOLE}
        series["two-fold", TOTAL] = [run["two_fold_dr"][k] for run in runs]
        for (name, size), values in series.items():
            truths = [run["truth"][k] for run in runs]
            squares = [
                ((value - truth) / truth) ** 2 - (0.1 / truth) ** 2 for value, truth in zip(values, truths, strict=True)
            ]
            mean = sum(squares) / len(squares)
            spread = math.sqrt(sum((s - mean) ** 2 for s in squares) / (len(squares) - 1) / len(squares))
            half = 2 * spread / (2 * mean) / math.log(10)  # two errors of √mean, on the scale of its log10
            height = math.log10(math.sqrt(mean))
            found[name, size, alpha] = height, height - half, height + half
    return found


@pytest.fixture(scope="module")
def runs():
    return split_runs()


@pytest.fixture(scope="module")
def over_sizes(runs):
    numbers = Errors(SimpleNamespace(sizes=SIZES, total=TOTAL), runs).numbers()
    return Drawn(studies.sailing_study().draw(numbers, "sailing: 40 runs", "Sailing(size=10)"))


def test_errors_over_sizes_are_those_of_the_runs_with_their_bars(runs, over_sizes):
    expected = by_hand(runs)
    shown = {(LEGEND[row["estimator"]], row["size"], row["alpha"]): row for row in over_sizes.rows}
    assert len(shown) == len(over_sizes.rows) == len(expected)
    for key, row in shown.items():
        assert (row["y"], row["low"], row["high"]) == pytest.approx(expected[key], rel=1e-9), key


def test_errors_over_sizes_have_a_panel_an_alpha_and_a_series_an_estimator(over_sizes):
    heading = over_sizes.spec["title"]
    assert (heading["text"], heading["subtitle"]) == ("sailing: 40 runs", "Sailing: size 10")
    assert (over_sizes.facet["field"], over_sizes.panels()) == ("alpha", list(ALPHAS))
    assert "α = " in over_sizes.facet["header"]["labelExpr"]
    for mark in ("line", "point"):
        assert over_sizes.fields(mark, "x", "y", "color") == ["size", "y", "estimator"]
        assert over_sizes.legend(mark, "color") == list(LEGEND)
        assert {over_sizes.layers[mark][axis]["type"] for axis in "xy"} == {"quantitative"}
        assert over_sizes.layers[mark]["x"]["title"] == "|D_test|"
        assert over_sizes.layers[mark]["y"]["title"] == "log10 of RMSE / true value"
    assert over_sizes.fields("rule", "x", "y", "y2", "color") == ["size", "low", "high", "estimator"]
    assert over_sizes.fields("point", "shape") == ["estimator"]
    assert over_sizes.legend("point", "shape") == list(LEGEND)
    looks = over_sizes.layers["point"]
    assert len(set(zip(looks["color"]["scale"]["range"], looks["shape"]["scale"]["range"], strict=True))) == len(LEGEND)


def test_two_fold_dr_is_a_point_of_its_own(over_sizes):
    points = [(row["size"], row["alpha"]) for row in over_sizes.rows if row["estimator"] == "2-fold DR"]
    assert sorted(points) == [(TOTAL, alpha) for alpha in ALPHAS]


def test_two_fold_dr_has_a_colour_and_a_level_line_of_its_own(over_sizes):
    colours = over_sizes.layers["point"]["color"]["scale"]["range"]
    assert len(set(colours)) == len(colours) == len(LEGEND)
    (level,) = (layer for layer in over_sizes.spec["spec"]["layer"] if "transform" in layer)
    assert level["mark"]["type"] == "rule"
    assert level["transform"][0]["filter"] == {"field": "estimator", "oneOf": ["2-fold DR"]}
    assert level["encoding"]["y"]["field"] == "y"
    assert "x" not in level["encoding"]  # from side to side
    assert over_sizes.layers["point"]["size"]["condition"]["value"] > over_sizes.layers["point"]["size"]["value"]


def errors_row(estimator, rmse, error, **about):
    return {"estimator": estimator, "relative_rmse": rmse, "relative_rmse_error": error} | about


def test_errors_over_alpha_say_whose_gifts_these_are():
    rows = [
        errors_row(name, (i + 1) / (8 + alpha), 0.01, alpha=alpha, donors="synthetic donors")
        for i, name in enumerate(("step-is", "step-wis", "reg", "dr-bsl", "dr-v2"))
        for alpha in ALPHAS
    ]
    drawn = Drawn(studies.kdd98_study().draw(pl.DataFrame(rows), "kdd98: 6 runs", "Kdd98()"))
    assert drawn.spec["title"]["text"] == "kdd98: 6 runs, synthetic donors"
    assert drawn.facet is None
    assert drawn.fields("line", "x", "y", "color") == ["alpha", "y", "estimator"]
    assert drawn.fields("rule", "y", "y2") == ["low", "high"]
    assert drawn.layers["line"]["x"]["title"] == "α"
    for layer in drawn.layers.values():  # side by side: bars of one α would hide each other
        assert (layer["x"]["type"], layer["xOffset"]["field"]) == ("ordinal", "estimator")
    assert drawn.legend("line", "color") == ["IS", "WIS", "REG", "DR-bsl", "DR-v2"]
    for row, given in zip(drawn.rows, rows, strict=True):
        half = 2 * 0.01 / given["relative_rmse"] / math.log(10)
        assert row["y"] == pytest.approx(math.log10(given["relative_rmse"]), rel=1e-12)
        assert (row["high"] - row["y"], row["y"] - row["low"]) == pytest.approx((half, half), rel=1e-9)


def test_gains_are_those_of_the_runs_with_a_panel_for_good_and_for_bad_candidates():
    sizes, rng = (50, 200), np.random.default_rng(5)
    runs = [
        {
            "gains": {
                rule: {p: {e: rng.normal(size=(len(CAUTIONS), 2)).tolist() for e in ESTIMATORS} for p in PANELS}
                for rule in RULES
            },
            "chosen": {
                rule: {p: {e: [[None, [0.2, 0.0]]] * len(CAUTIONS) for e in ESTIMATORS} for p in PANELS}
                for rule in RULES
            },
        }
        for _ in range(25)
    ]
    numbers = Gains(SimpleNamespace(sizes=sizes), runs).numbers()
    drawn = Drawn(studies.safe_improvement_study().draw(numbers, "safe-improvement: 25 runs", "MountainCar()"))
    names = {"IS": "step-is", "IS of r − R_min": "dr-bsl", "DR": "dr"}
    panels = {
        f"π_train {what}, {rule}": (which, panel)
        for rule, which in (("V − Cσ above V(π0)", "value"), ("D − Cσ_D above 0", "difference"))
        for what, panel in (("maximises", "maximize"), ("minimises", "minimize"))
    }
    heading = drawn.spec["title"]
    assert (heading["text"], heading["subtitle"]) == ("safe-improvement: 25 runs", "Mountain Car")
    assert (drawn.facet["field"], drawn.facet["sort"]) == ("panel", list(panels))
    assert (drawn.panels(), drawn.spec["columns"]) == (sorted(panels), 2)
    assert drawn.fields("line", "x", "y", "color", "strokeDash") == ["size", "gain", "estimator", "C"]
    assert drawn.fields("rule", "x", "y", "y2") == ["size", "low", "high"]
    assert drawn.fields("point", "shape", "detail") == ["estimator", "C"]
    assert drawn.legend("line", "color") == drawn.legend("point", "shape") == list(names)
    assert drawn.legend("line", "strokeDash") == [f"C = {caution:g}" for caution in CAUTIONS]
    assert {tuple(layer["x"]["axis"]["values"]) for layer in drawn.layers.values()} == {sizes}
    for mark, channel in (("line", "strokeWidth"), ("point", "size")):  # what lies below is wider, and shows
        scale = drawn.layers[mark][channel]["scale"]
        assert (scale["domain"], scale["range"]) == (list(names), sorted(set(scale["range"]), reverse=True))
    assert drawn.layers["line"]["y"]["title"] == "V of the recommended policy − V(π0)"
    shown = {(panels[row["panel"]], names[row["estimator"]], row["C"], row["size"]): row for row in drawn.rows}
    assert len(shown) == len(drawn.rows) == len(RULES) * len(PANELS) * len(ESTIMATORS) * len(CAUTIONS) * len(sizes)
    for ((rule, panel), name, caution, size), row in shown.items():
        c = [f"C = {value:g}" for value in CAUTIONS].index(caution)
        gains = [run["gains"][rule][panel][name][c][sizes.index(size)] for run in runs]
        mean = sum(gains) / 25
        error = math.sqrt(sum((gain - mean) ** 2 for gain in gains) / 24 / 25)
        assert (row["gain"], row["low"], row["high"]) == pytest.approx((mean, mean - 2 * error, mean + 2 * error))
