"""Cases on which other libraries are known to go wrong; ours must be right on the same ones."""

import math

import offpolicy as op
import polars as pl
import pytest
from logs import random_log, skeleton, with_ratio


def survival_log(copies=1):
    """Two steps: survive the first, which π0 does half the time and π1 nine times in ten, and earn 1.

    The log holds exactly the frequencies of π0, so a right estimate is the truth, 0.9.
    """
    log = skeleton([1, 2] * copies)
    rows = pl.DataFrame({"reward": [0.0, 0.0, 1.0], "behavior_prob": [0.5, 0.5, 1.0], "target_prob": [0.1, 0.9, 1.0]})
    return pl.concat([log, pl.concat([rows] * copies)], how="horizontal")


@pytest.mark.parametrize("estimator", ["is", "step-is", "wis", "step-wis"])
def test_weights_of_ended_episodes_stay_in_the_normaliser(estimator):
    ev = op.evaluate(survival_log(), estimators=[estimator])
    assert ev[estimator].value == pytest.approx(0.9, rel=1e-15)


def test_the_mean_over_running_episodes_would_be_another_number():
    log = survival_log(50)
    running = log.filter(pl.col("step") == 1)
    weights = pl.Series([0.9 / 0.5] * running.height)
    assert (weights * running["reward"]).sum() / weights.sum() == 1.0
    assert op.evaluate(log)["step-wis"].value == pytest.approx(0.9, rel=1e-15)


def test_an_episode_that_ends_early_is_padded_and_not_dropped():
    """By hand: c = (2), (1, 3), and r = (5), (1, 4); D_1 = 1.5, D_2 = 2.5."""
    log = skeleton([1, 2]).with_columns(reward=pl.Series([5.0, 1.0, 4.0]), ratio=pl.Series([2.0, 1.0, 3.0]))
    ev = op.evaluate(log)
    assert ev["step-wis"].value == pytest.approx((2 * 5 + 1 * 1) / 3 + 3 * 4 / 5, rel=1e-15)
    assert ev["wis"].value == pytest.approx((2 * 5 + 3 * 5) / 5, rel=1e-15)
    assert ev["step-is"].value == pytest.approx((2 * 5 + 1 * 1 + 3 * 4) / 2, rel=1e-15)
    assert ev["mc"].value == 5.0


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_ten_thousand_steps_do_not_end_in_nan(probability):
    log = skeleton([10_000, 10_000, 4_000]).with_columns(
        reward=0.5, behavior_prob=pl.lit(probability), target_prob=pl.lit(probability)
    )
    ev = op.evaluate(log)
    for estimator in ("mc", "is", "step-is", "wis", "step-wis"):
        assert ev[estimator].value == 4000.0
        assert ev[estimator].std_error == pytest.approx(1000.0, rel=1e-12)


def test_without_a_discount_on_the_future_nothing_is_divided_by_zero():
    log = random_log(101)
    first = log.filter(pl.col("step") == 0)
    ev = op.evaluate(log, discount=0.0)
    weights = first["target_prob"] / first["behavior_prob"]
    assert ev["mc"].value == pytest.approx(first["reward"].mean(), rel=1e-14)
    assert ev["step-is"].value == pytest.approx((weights * first["reward"]).mean(), rel=1e-14)
    assert all(math.isfinite(value) for value in ev.table["value"])


def test_episodes_that_earn_nothing_count():
    log = skeleton([2] * 4).with_columns(
        reward=pl.Series([0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]), ratio=1.0, q_hat=0.0, v_hat=0.0
    )
    ev = op.evaluate(log)
    for estimator in ("mc", "is", "step-is", "wis", "step-wis", "dr", "wdr"):
        assert ev[estimator].value == 0.5
        assert ev[estimator].episodes == 4
        assert ev[estimator].std_error == 0.5


def test_a_log_that_earns_nothing_at_all_is_worth_nothing():
    log = random_log(102).with_columns(reward=0.0)
    ev = op.evaluate(log, estimators=["mc", "is", "step-is", "wis", "step-wis"])
    assert set(ev.table["value"]) == {0.0}
    assert set(ev.table["std_error"]) == {0.0}


def test_the_direct_method_is_the_value_of_the_first_state_only():
    log = skeleton([3, 2]).with_columns(
        reward=1.0, ratio=1.0, q_hat=0.0, v_hat=pl.Series([4.0, 100.0, 100.0, 8.0, 100.0])
    )
    assert op.evaluate(log)["reg"].value == 6.0


def test_tiny_probabilities_get_no_epsilon():
    log = skeleton([2, 2]).with_columns(reward=pl.Series([1.0, 2.0, 3.0, 4.0]), behavior_prob=1e-12, target_prob=2e-12)
    ev = op.evaluate(log)
    assert ev["step-is"].value == pytest.approx((2 * 1 + 4 * 2 + 2 * 3 + 4 * 4) / 2, rel=1e-14)
    assert ev["step-wis"].value == pytest.approx(5.0, rel=1e-14)


def test_the_logged_actions_decide_and_no_sampled_ones():
    log = with_ratio(random_log(103))
    first, second = op.evaluate(log), op.evaluate(log)
    assert first.table.equals(second.table)
