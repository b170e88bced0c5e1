"""An interval of a plugin is asked for like ours, and what it gives is looked at."""

import math

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from lab import lab
from offpolicy.intervals import Ends, Method, WithheldError
from offpolicy.testing import Walk

LOG = op.demo_log(episodes=200).with_columns(user=pl.col("episode") // 2)


def three(request):
    return request.around(request.value, 3 * request.std_error, factor=3)


def spread(request):
    x = request.values()
    assert np.mean(x) == pytest.approx(request.value)
    return request.around(request.value, float(np.ptp(x)))


def refuse(request):
    raise WithheldError("the moon is full")


METHODS = {
    "three": lambda: Method("asymptotic", three, by_cluster=True),
    "spread": lambda: Method("finite-sample", spread, needs_means=True),
    "below": lambda: Method("heuristic", three, only="lower"),
    "refuse": lambda: Method("heuristic", refuse),
}


@pytest.fixture(autouse=True)
def brought(monkeypatch):
    lab(monkeypatch, intervals=METHODS)


def evaluate(**options):
    return op.evaluate(LOG, discount=0.9, horizon=10, **{"estimators": ["step-is", "wis"]} | options)


def giving(monkeypatch, ends, **members):
    lab(monkeypatch, intervals={"odd": lambda: Method(**{"kind": "heuristic", "ends": ends} | members)})
    return evaluate()["step-is"]


def test_it_is_the_interval_of_an_evaluation():
    ev = evaluate(interval="three")
    for estimate in ev.estimates:
        assert (estimate.low, estimate.high) == (
            estimate.value - 3 * estimate.std_error,
            estimate.value + 3 * estimate.std_error,
        )
    assert ev["wis"].own_interval.assumptions == {"factor": 3}


def test_it_has_one_side_alone_where_that_is_asked_for():
    found = evaluate()["step-is"].interval(method="three", side="lower")
    assert (found.low is None, found.high) == (False, None)
    assert evaluate()["step-is"].interval(method="below").high is None
    assert "bounds a value from below only" in evaluate()["step-is"].interval(method="below", side="upper").reason


def test_it_is_withheld_where_it_is_not_valid():
    ev = evaluate()
    assert "holds for means of independent values" in ev["wis"].interval(method="spread").reason
    assert ev["step-is"].interval(method="spread").kind == "finite-sample"
    assert ev["step-is"].interval(method="refuse").reason == "the moon is full"
    clustered = evaluate(cluster="user", estimators=["step-is"])["step-is"]
    assert clustered.interval(method="three").low is not None
    assert "needs independent episodes" in clustered.interval(method="spread").reason


def test_differences_and_drivers_take_it():
    gain = evaluate(paired=True).difference("target", estimator="step-is")
    assert gain.interval(method="three").low == pytest.approx(gain.value - 3 * gain.std_error)
    assert gain.interval(method="spread").low < gain.value
    walk = Walk()
    log = walk.simulate(walk.behavior, 300, seed=0)
    cf = op.cross_fit(log, walk, policy=walk.policies["eager"], estimators=["dr"], interval="three")
    assert cf["dr"].low == pytest.approx(cf["dr"].value - 3 * cf["dr"].std_error)
    found = op.improve(log, walk, generator="mixture", interval="three")
    assert found.candidates["score"].null_count() < found.candidates.height


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        (lambda request: Ends(math.nan, 1.0, {}), "a number as low, not nan"),
        (lambda request: Ends(0.0, None, {}), "a number as high, not None"),
        (lambda request: Ends(1.0, 0.0, {}), "low <= high"),
        (lambda request: (0.0, 1.0), "offpolicy.intervals.Ends, not tuple"),
    ],
)
def test_wrong_ends_are_the_plugins_error(monkeypatch, ends, message):
    with pytest.raises(op.PluginError, match=f"interval 'odd' of plugin 'lab' must give {message}"):
        giving(monkeypatch, ends).interval(method="odd")


def test_an_exception_names_the_plugin(monkeypatch):
    with pytest.raises(op.PluginError, match="interval 'odd' of plugin 'lab' failed: ZeroDivisionError"):
        giving(monkeypatch, lambda request: 1 / 0).interval(method="odd")


def test_infinite_ends_are_withheld(monkeypatch):
    found = giving(monkeypatch, lambda request: Ends(-math.inf, math.inf, {})).interval(method="odd")
    assert found.reason == "its ends are beyond the range of f64"


@pytest.mark.parametrize(("member", "value"), [("kind", "certain"), ("only", "both")])
def test_a_description_that_makes_no_sense_is_refused(monkeypatch, member, value):
    with pytest.raises(op.PluginError, match=f"interval 'odd' of plugin 'lab': {member} must be one of"):
        giving(monkeypatch, three, **{member: value}).interval(method="odd")


def test_what_is_no_method_is_refused(monkeypatch):
    class Strange:
        ends = staticmethod(three)

    lab(monkeypatch, intervals={"odd": Strange})
    with pytest.raises(op.PluginError, match=r"must be an offpolicy\.intervals\.Method, not Strange"):
        evaluate(interval="odd")
