"""The interval of an evaluation is made once an estimate, whoever looks at it and however often."""

import offpolicy as op
import pytest
from offpolicy import intervals
from offpolicy.cli import show, withheld


@pytest.mark.parametrize("method", ["t", "bootstrap"])
def test_an_interval_is_made_once_for_each_estimate(monkeypatch, method):
    ev = op.evaluate(op.demo_log(episodes=60), discount=0.9, interval=method)
    made, make = [], intervals.interval
    monkeypatch.setattr(intervals, "interval", lambda request, why=None: made.append(request) or make(request, why))
    monkeypatch.setattr(withheld, "asked_for_interval", lambda: True)
    assert made == []
    for _ in range(2):
        ev.to_dict()
        str(ev)
        show.evaluation(ev, None)
        withheld.exit_code(ev)
        for estimate in ev.estimates:
            assert (estimate.low, estimate.high) == (estimate.own_interval.low, estimate.own_interval.high)
            assert estimate.reason == estimate.own_interval.reason
    assert sorted((one.policy, one.estimator) for one in made) == sorted(each.key for each in ev.estimates)


def test_an_interval_that_is_asked_for_is_that_of_the_evaluation():
    ev = op.evaluate(op.demo_log(episodes=60), discount=0.9)
    assert all(estimate.interval() == estimate.own_interval for estimate in ev.estimates)
    assert ev["dr"].interval(0.5) != ev["dr"].own_interval
