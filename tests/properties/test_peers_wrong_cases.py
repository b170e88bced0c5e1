"""Cases on which other libraries go wrong: the truth, computed exactly, their number, and ours, which must be true.

normaliser over running episodes only         RLlib, COBS, ReAgent, dice_rl, policy_eval, offline_rl_ope
episodes of one length only                   SCOPE-RL
quotient of two cumulative products           SCOPE-RL
Hoeffding's half-width grows with n           SCOPE-RL
one-sided quantile in a two-sided interval    SCOPE-RL
ranges taken from the sample                  SCOPE-RL
episodes with return 0 dropped                COBS
Σ γ^t V̂(s_t) as the direct method             ReAgent
Σx² - (Σx)²/n as the variance                 vw-estimators
sampled actions instead of the logged ones    RLlib
"""

import math
import statistics
from fractions import Fraction

import numpy as np
import offpolicy as op
import polars as pl
import pytest
import reference
from logs import episodes_of, one_step_log, random_log, skeleton
from offpolicy.testing import Walk
from scipy import stats


def survival_log(copies=1):
    """Two steps: survive the first, which π0 does half the time and π1 nine times in ten, and earn 1.

    The log holds exactly the frequencies of π0, so a right estimate is the truth, 0.9.
    """
    log = skeleton([1, 2] * copies)
    rows = pl.DataFrame({"reward": [0.0, 0.0, 1.0], "behavior_prob": [0.5, 0.5, 1.0], "target_prob": [0.1, 0.9, 1.0]})
    return pl.concat([log, pl.concat([rows] * copies)], how="horizontal")


@pytest.mark.parametrize("estimator", ["is", "step-is", "wis", "step-wis", "dr", "wdr"])
@pytest.mark.parametrize("copies", [1, 50])
def test_weights_of_ended_episodes_stay_in_the_normaliser(estimator, copies):
    """RLlib divides by the mean weight of the episodes still running, and averages over all: 0.5."""
    log = survival_log(copies).with_columns(q_hat=0.0, v_hat=0.0)
    c = [2 * Fraction("0.9")] * copies
    assert sum(x / reference.mean(c) * 1 for x in c) / (2 * copies) == Fraction(1, 2)
    assert sum(x * 1 for x in c) / sum(c) == 1  # averaged over the running ones too
    assert sum(x * 1 for x in c) / (sum(c) + copies * 2 * Fraction("0.1")) == Fraction("0.9")
    assert op.evaluate(log)[estimator].value == pytest.approx(0.9, rel=1e-15)


def test_an_episode_that_ends_early_is_padded_and_not_dropped():
    """By hand: c = (2), (1, 3), and r = (5), (1, 4); D_1 = 1.5, D_2 = 2.5, of the running one alone 3."""
    log = skeleton([1, 2]).with_columns(reward=pl.Series([5.0, 1.0, 4.0]), ratio=pl.Series([2.0, 1.0, 3.0]))
    ev = op.evaluate(log)
    running_only = Fraction(2 * 5 + 1 * 1, 3) + Fraction(3 * 4, 3)
    truth = Fraction(2 * 5 + 1 * 1, 3) + Fraction(3 * 4, 5)
    assert ev["step-wis"].value == pytest.approx(float(truth), rel=1e-15) != pytest.approx(float(running_only))
    assert ev["wis"].value == pytest.approx((2 * 5 + 3 * 5) / 5, rel=1e-15)
    assert ev["step-is"].value == pytest.approx((2 * 5 + 1 * 1 + 3 * 4) / 2, rel=1e-15)
    assert ev["mc"].value == 5.0


def test_steps_of_ragged_episodes_stay_with_their_episode():
    """SCOPE-RL cuts all rows into pieces of one length: here (1, 10 | 20, 2 | 3, 30), γ = ½, and has 15 for 79/6."""
    log = skeleton([1, 3, 2]).with_columns(reward=pl.Series([1.0, 10.0, 20.0, 2.0, 3.0, 30.0]), ratio=1.0)
    pieces = np.array(log["reward"]).reshape(3, 2) @ [1.0, 0.5]
    assert pieces.mean() == (1 + 5 + 20 + 1 + 3 + 15) / 3 == 15.0
    truth = Fraction(1 + (10 + 10 + Fraction(1, 2)) + (3 + 15), 3)
    assert op.evaluate(log, discount=0.5)["step-is"].value == pytest.approx(float(truth), rel=1e-15)
    assert truth == Fraction(79, 6)


@pytest.mark.parametrize("steps", [323, 324, 10_000])
def test_a_long_product_of_small_probabilities_is_not_zero(steps):
    """SCOPE-RL divides Π π1 by Π π0: with p = 0.1 that is 0/0 from 324 steps on."""
    with np.errstate(invalid="ignore"):
        peer = np.prod(np.full(steps, 0.1)) / np.prod(np.full(steps, 0.1))
    assert math.isnan(peer) == (steps >= 324)
    log = skeleton([steps, steps]).with_columns(reward=1.0, behavior_prob=0.1, target_prob=0.1)
    ev = op.evaluate(log)
    for estimator in ("is", "step-is", "wis", "step-wis"):
        assert ev[estimator].value == steps


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_ten_thousand_steps_do_not_end_in_nan(probability):
    log = skeleton([10_000, 10_000, 4_000]).with_columns(
        reward=0.5, behavior_prob=pl.lit(probability), target_prob=pl.lit(probability)
    )
    ev = op.evaluate(log)
    for estimator in ("mc", "is", "step-is", "wis", "step-wis"):
        assert ev[estimator].value == 4000.0
        assert ev[estimator].std_error == pytest.approx(1000.0, rel=1e-12)


def test_weights_of_ten_thousand_steps_cancel():
    """ρ = 2 and ½ in turn, then 2 and 4 at the last step: c_t leaves no trace but c_H = 2, 4, and D_H = 3."""
    ratios = [2.0, 0.5] * 4_999 + [1.0]
    log = skeleton([9_999] * 2).with_columns(
        reward=pl.Series(([0.0] * 9_998 + [1.0]) + ([0.0] * 9_998 + [7.0])),
        ratio=pl.Series([*ratios[:-1], 2.0, *ratios[:-1], 4.0]),
    )
    ev = op.evaluate(log)
    assert ev["step-wis"].value == ev["wis"].value == (2 * 1 + 4 * 7) / (2 + 4)
    assert ev["step-is"].value == (2 * 1 + 4 * 7) / 2


def test_without_a_discount_on_the_future_nothing_is_divided_by_zero():
    """exp(t ln γ), or dividing by γ^t, has no value for γ = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        assert np.isnan(np.exp(0 * np.log(0.0)))
    log = random_log(101)
    ev = op.evaluate(log, discount=0.0)
    for row in ev.table.iter_rows(named=True):
        expected = reference.evaluate(episodes_of(log), row["estimator"], 0.0)
        assert row["value"] == pytest.approx(float(expected.value), rel=1e-13)
        assert row["std_error"] == pytest.approx(expected.std_error, rel=1e-12)


def test_episodes_that_earn_nothing_count():
    """Returns 0, 2, 0, 0: COBS leaves those with 0 out of its sequential DR, and has 2 for 0.5."""
    log = skeleton([2] * 4).with_columns(
        reward=pl.Series([0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]), ratio=1.0, q_hat=0.0, v_hat=0.0
    )
    returns = log.group_by("episode").agg(pl.col("reward").sum())["reward"]
    assert returns.filter(returns != 0).mean() == 2.0
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
    """ReAgent adds up γ^t V̂(s_t) along the log: 68.5 for 6."""
    log = skeleton([3, 2]).with_columns(
        reward=1.0, ratio=1.0, q_hat=0.0, v_hat=pl.Series([4.0, 100.0, 100.0, 8.0, 100.0])
    )
    along = (pl.col("v_hat") * 0.5 ** pl.col("step")).sum().over("episode")
    assert log.select(along.alias("sum"), "step").filter(step=0)["sum"].mean() == 68.5
    assert op.evaluate(log, discount=0.5)["reg"].value == 6.0


def test_a_variance_far_below_the_square_of_the_mean():
    """Σx² - (Σx)²/n, as vw-estimators has it, keeps no digit of a variance of 2/3 beside a mean of 10⁹."""
    x = [1e9, 1e9 + 1, 1e9 + 2] * 10
    n = len(x)
    naive = (sum(value * value for value in x) - sum(x) ** 2 / n) / (n - 1)
    exact = Fraction(statistics.variance(map(Fraction, x)))
    assert exact == Fraction(20, 29)
    assert abs(naive - exact) > exact / 2
    assert op.evaluate(one_step_log(x))["mc"].std_error == pytest.approx(math.sqrt(exact / n), rel=1e-14)


def hoeffding(rewards, bounds, confidence=0.95):
    found = op.evaluate(one_step_log(rewards), horizon=1, estimators=["step-is"])["step-is"]
    return found.interval(confidence, "hoeffding", bounds)


@pytest.mark.parametrize("n", [4, 16, 400])
def test_hoeffding_narrows_as_the_log_grows(n):
    """SCOPE-RL has √(ln(2/δ)/2·n) in the place of √(ln(2/δ)/(2n)): n times too wide."""
    found = hoeffding([0.0, 1.0] * (n // 2), op.Bounds(reward=(0.0, 1.0), ratio=1.0))
    truth, peer = math.sqrt(math.log(2 / 0.05) / (2 * n)), math.sqrt(math.log(2 / 0.05) / 2 * n)
    assert peer == pytest.approx(n * truth)
    assert (found.high - found.low) / 2 == pytest.approx(truth, rel=1e-12)


def test_negative_returns_have_the_interval_of_positive_ones():
    """A range from 0 to the largest value of the sample, SCOPE-RL's, is empty or upside down where all are costs."""
    rewards = [-1.0, -0.25, -0.5, -0.25]
    half = (max(rewards) - 0) * math.sqrt(math.log(2 / 0.05) / 8)
    assert half < 0
    bounds = op.Bounds(reward=(-1.0, 0.0), ratio=2.0)
    costs = hoeffding(rewards, bounds)
    gains = hoeffding([-reward for reward in rewards], op.Bounds(reward=(0.0, 1.0), ratio=2.0))
    truth = 2 * math.sqrt(math.log(2 / 0.05) / 8)
    assert (costs.low, costs.high) == (-gains.high, -gains.low)
    assert (costs.low, costs.high) == (pytest.approx(-0.5 - truth), pytest.approx(-0.5 + truth))


@pytest.mark.parametrize("method", ["hoeffding", "bernstein", "betting", "anderson"])
def test_ranges_are_given_and_never_those_of_the_sample(method):
    """Where 99 of 100 earn nothing and one earns 100, a sample without that one has the range 0, and is sure of 0."""
    sample = [0.0] * 20
    assert (max(sample) - min(sample)) * math.sqrt(math.log(2 / 0.05) / 40) == 0.0
    estimate = op.evaluate(one_step_log(sample), horizon=1, estimators=["step-is"])["step-is"]
    found = estimate.interval(0.95, method, op.Bounds(reward=(0.0, 100.0), ratio=1.0))
    assert found.low <= 0 < 1 < found.high
    assert estimate.interval(0.95, method).reason.startswith(f"{method} needs bounds=")


@pytest.mark.parametrize("n", [2, 3, 10])
def test_a_two_sided_t_interval_has_two_tails(n):
    """SCOPE-RL takes the quantile 0.95 for an interval of 95%, which then covers 90%."""
    ev = op.evaluate(one_step_log([0.0, 1.0, *[0.5] * (n - 2)]), estimators=["mc"])
    found, error = ev["mc"].interval(0.95, "t"), ev["mc"].std_error
    q = (found.high - found.low) / 2 / error
    assert q == pytest.approx(stats.t.ppf(0.975, n - 1), rel=1e-9)
    assert 2 * stats.t.cdf(q, n - 1) - 1 == pytest.approx(0.95)
    assert 2 * stats.t.cdf(stats.t.ppf(0.95, n - 1), n - 1) - 1 == pytest.approx(0.9)


def test_tiny_probabilities_get_no_epsilon():
    """With 1e-8 added to denominators, as many do, ρ is 2e-4 and not 2."""
    log = skeleton([2, 2]).with_columns(reward=pl.Series([1.0, 2.0, 3.0, 4.0]), behavior_prob=1e-12, target_prob=2e-12)
    assert 2e-12 / (1e-12 + 1e-8) < 2.1e-4
    ev = op.evaluate(log)
    assert ev["step-is"].value == pytest.approx((2 * 1 + 4 * 2 + 2 * 3 + 4 * 4) / 2, rel=1e-14)
    assert ev["step-wis"].value == pytest.approx(5.0, rel=1e-14)


def test_the_logged_actions_decide_and_no_sampled_ones():
    """Some draw an action of the target policy for each state, and then compare logs and policies by chance."""
    walk = Walk()
    log, target = walk.simulate(walk.behavior, n=50, seed=1), walk.policies["eager"]
    found = op.annotate(log, target, columns=op.Columns(state=walk.state_columns))
    probabilities = target.probabilities(log.select(walk.state_columns).to_numpy(), log["step"].to_numpy())
    actions = log["action"].to_numpy()
    assert found["target_prob"].to_list() == probabilities[np.arange(len(actions)), actions].tolist()
    assert found["target_prob"].to_list() != probabilities[np.arange(len(actions)), 1 - actions].tolist()
