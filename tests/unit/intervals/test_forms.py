"""Trajectories are left out and drawn again only of an estimator whose form is known."""

from types import SimpleNamespace

import offpolicy as op
import pytest
from logs import random_log
from offpolicy.evaluation.estimators import describe, named
from offpolicy.intervals import ratios

TRAITS = ("id", "weighted", "blended", "shrinks", "needs_baseline", "weights_returns", "step_sums", "needs")
#: One trait that a ratio estimator of another form could have instead of that of `wdr`, `wis` or `step-wis`.
OTHERS = [
    ("wdr", {"step_sums": ["weight", "residual"]}),
    ("wdr", {"step_sums": ["weight", "residual", "value", "reward"]}),
    ("wdr", {"step_sums": []}),
    ("wdr", {"needs": ["ratio", "r_hat", "v_hat"]}),
    ("wdr", {"blended": True}),
    ("step-wis", {"step_sums": ["weight"]}),
    ("step-wis", {"step_sums": ["weight", "reward", "value"]}),
    ("step-wis", {"needs_baseline": True}),
    ("wis", {"step_sums": ["weight", "reward"]}),
    ("wis", {"weights_returns": False}),
    ("wis", {"shrinks": True}),
]


def interval(estimator, method):
    """Return an interval of a new evaluation, which has kept no resamples."""
    log = random_log(3, episodes=20, horizon=4)
    return op.evaluate(log, discount=0.9, estimators=[estimator])[estimator].interval(0.9, method)


@pytest.mark.parametrize("method", ["t", "t-skew", "bootstrap", "bootstrap-bca"])
@pytest.mark.parametrize(("estimator", "other"), OTHERS, ids=str)
def test_an_estimator_of_an_unknown_form_gets_the_interval_of_no_other(monkeypatch, estimator, other, method):
    assert interval(estimator, method).low is not None
    own = {name: getattr(describe(estimator), name) for name in TRAITS}
    made_up = SimpleNamespace(**{**own, "id": "new-ratio", **other})
    monkeypatch.setattr(ratios, "describe", lambda _: made_up)
    found = interval(estimator, method)
    assert (found.low, found.high) == (None, None)
    assert found.reason == "no form of new-ratio is known by which trajectories can be left out or drawn again"


def test_every_estimator_of_the_core_has_its_own_form_but_the_blend():
    weighted = named(lambda about: about.weighted and not about.blended)
    assert {name: ratios.form_of(describe(name)) for name in weighted} == {
        "wis": "weighted returns",
        "step-wis": "weighted rewards",
        "wdr": "doubly robust",
    }
    with pytest.raises(op.OffPolicyError, match="no form of magic is known"):
        ratios.form_of(describe("magic"))
    means = named(lambda about: not about.weighted)
    assert {ratios.form_of(describe(name)) for name in means} == {"averages"}
