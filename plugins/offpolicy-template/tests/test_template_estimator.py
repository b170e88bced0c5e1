"""The estimator and the interval of the template, as whoever evaluates a log meets them."""

import math

import offpolicy as op
import pytest
from offpolicy_template import CappedStepIs, Machine, Thresholds

LOG = op.demo_log(episodes=500)


def evaluate(**options):
    return op.evaluate(LOG, discount=0.9, horizon=10, estimators=["step-is", "capped-step-is"], **options)


def test_a_cap_makes_the_estimate_smaller_and_less_uncertain():
    ev = evaluate()
    assert ev["capped-step-is"].value < ev["step-is"].value
    assert ev["capped-step-is"].std_error < ev["step-is"].std_error
    assert ev.verdict_on(ev["capped-step-is"]).level == "fragile"


def test_no_trajectory_is_beyond_the_cap_times_its_return():
    ev = evaluate()
    values, returns = ev.values("capped-step-is")["value"], op.evaluate(LOG, discount=0.9).values("mc")["value"]
    assert (values <= 10.0 * returns + 1e-12).all()
    lowest, highest = CappedStepIs(cap=10.0).range(op.Bounds(reward=(0, 1)), ev["step-is"].terms)
    assert lowest <= values.min() <= values.max() <= highest


def test_chebyshev_is_four_and_a_half_errors_wide():
    ev = evaluate(interval="chebyshev")
    estimate = ev["capped-step-is"]
    assert estimate.high - estimate.value == pytest.approx(math.sqrt(20) * estimate.std_error)
    below = estimate.interval(0.95, "chebyshev", side="lower")
    assert estimate.value - below.low == pytest.approx(math.sqrt(19) * estimate.std_error)


def test_the_machine_is_evaluated_by_it():
    machine = Machine()
    policy = next(iter(Thresholds((3,)).candidates(None, machine))).policy
    log = machine.simulate(machine.behavior, 400, seed=0)
    cf = op.cross_fit(log, machine, policy=policy, estimators=["capped-step-is", "step-is"], interval="chebyshev")
    assert cf["capped-step-is"].low < cf["capped-step-is"].value < cf["capped-step-is"].high
