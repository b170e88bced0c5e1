"""Numeric promise 3: variances that survive a large mean, and are zero where nothing varies."""

import math
import random
import statistics
from itertools import permutations

import offpolicy as op
import polars as pl
import pytest
import reference
from logs import episodes_of, one_step_log, random_log, skeleton


def near(expected):
    return pytest.approx(float(expected), rel=1e-12, abs=0.0)


def standard_error(rewards):
    """Exact: `statistics.variance` sums fractions."""
    return math.sqrt(statistics.variance(rewards) / len(rewards))


@pytest.mark.parametrize("mean", [1e9, -1e9, 1e12])
@pytest.mark.parametrize("spread", [2.0**-10, 1.0])
def test_a_large_mean_does_not_drown_a_small_variance(mean, spread):
    rng = random.Random(1)
    rewards = [mean + spread * rng.randrange(-4, 5) for _ in range(300)]
    naive = sum(x * x for x in rewards) - sum(rewards) ** 2 / len(rewards)
    exact = statistics.variance(rewards) * (len(rewards) - 1)
    assert abs(naive - exact) > 0.01 * exact
    ev = op.evaluate(one_step_log(rewards))
    for estimator in ("mc", "is", "step-is"):
        assert ev[estimator].value == near(statistics.mean(rewards))
        assert ev[estimator].std_error == near(standard_error(rewards))


def test_rewards_one_bit_apart():
    rewards = [1e9, math.nextafter(1e9, 2e9), 1e9, 1e9]
    assert op.evaluate(one_step_log(rewards))["mc"].std_error == near(standard_error(rewards))


@pytest.mark.parametrize("estimator", ["wis", "step-wis"])
def test_a_large_mean_does_not_drown_the_error_of_a_ratio(estimator):
    rng = random.Random(2)
    rewards = [1e9 + rng.randrange(8) / 1024 for _ in range(40)]
    ratios = pl.Series([rng.randrange(1, 64) / 16 for _ in range(40)])
    log = one_step_log(rewards, ratio=ratios)
    expected = reference.evaluate(episodes_of(log), estimator, 1.0)
    estimate = op.evaluate(log)[estimator]
    assert estimate.value == near(expected.value)
    # r - R_t cancels 12 of the 16 digits of a float R_t: 1e-12 needs it in more than one.
    assert estimate.std_error == near(expected.std_error)


@pytest.mark.parametrize("reward", [0.1, 1 / 3, 1e9 + 0.1, -7e-5, 0.0])
@pytest.mark.parametrize("n", [2, 3, 7, 1000])
def test_constant_values_have_no_error_at_all(reward, n):
    log = one_step_log([reward] * n, q_hat=pl.lit(reward), v_hat=pl.lit(reward))
    ev = op.evaluate(log)
    for estimate in ev.estimates:
        assert (estimate.value, estimate.std_error) == (reward, 0.0)
    for estimator in ("mc", "is", "step-is", "wis", "step-wis", "reg", "dr", "wdr"):
        assert (ev[estimator].low, ev[estimator].high) == (None, None)  # nor does anything tell one


@pytest.mark.parametrize("estimator", reference.UNIQUE)
def test_a_doubled_log(estimator):
    log = random_log(31)
    n = log["episode"].n_unique()
    again = log.with_columns(episode=pl.col("episode") + 1000)
    arguments = {"discount": 0.9, "baseline": 0.5, "estimators": [estimator]}
    once = op.evaluate(log, **arguments)[estimator]
    twice = op.evaluate(pl.concat([log, again]), **arguments)[estimator]
    assert twice.value == near(once.value)
    assert twice.std_error**2 == near(once.std_error**2 * (n - 1) / (2 * n - 1))
    assert twice.ess == near(2 * once.ess)


def test_the_variance_is_the_unbiased_one():
    ev = op.evaluate(one_step_log([0.0, 2.0]))
    assert ev["mc"].std_error == 1.0


def test_one_trajectory_has_a_value_and_no_error():
    ev = op.evaluate(random_log(32, episodes=1), baseline=0.5)
    for estimator in reference.ESTIMATORS:
        estimate = ev[estimator]
        assert math.isfinite(estimate.value)
        assert estimate.std_error is None
        assert (estimate.low, estimate.high) == (None, None)
        assert estimate.reason
    assert ev.table["std_error"].null_count() == ev.table.height


@pytest.mark.parametrize("huge", [1e16, 1e50, 1e120])
def test_huge_values_cancel_and_leave_the_small_ones(huge):
    for rewards in permutations([huge, 1.0, -huge, 3.0]):
        assert op.evaluate(one_step_log(rewards))["mc"].value == 1.0


def test_the_order_of_a_sum_over_the_whole_range_of_floats_does_not_matter():
    numbers = [1e300, 1.0, -1e300, 3.0, 1e-300]
    values = {op.evaluate(one_step_log(rewards))["mc"].value for rewards in permutations(numbers)}
    assert len(values) == 1


def test_discounting_is_by_the_steps_before_this_one():
    log = skeleton([3]).with_columns(reward=pl.Series([1.0, 10.0, 100.0]))
    assert op.evaluate(log, discount=0.5)["mc"].value == 31.0
