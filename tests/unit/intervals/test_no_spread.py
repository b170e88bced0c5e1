"""Where no two trajectories differ, a sample tells nothing of the error of its mean; nor is rounding an error of 0."""

import math
from fractions import Fraction

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from logs import bounded_log, one_step_log, random_log, skeleton
from offpolicy import intervals
from offpolicy.intervals import bootstrap
from offpolicy.intervals.normal import student_quantile
from offpolicy.intervals.rounding import rounding
from offpolicy.testing import Walk

LEARNT = [name for name, method in intervals.METHODS.items() if method.kind not in intervals.PROMISES]
PROMISED = [name for name in intervals.METHODS if name not in LEARNT]
BOUNDS = op.Bounds(reward=(0, 1), ratio=2.0, q=(-1.0, 1.0))
SIDES = ("two", "lower", "upper")


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("method", LEARNT)
def test_a_sample_without_rewards_has_no_interval_that_is_learnt_from_its_spread(method, side):
    ev = op.evaluate(
        bounded_log(1, 30, 4).with_columns(reward=0.0), estimators=["mc", "is", "step-is", "dr-bsl"], baseline=0
    )
    for estimate in ev.estimates:
        found = estimate.interval(method=method, side=side)
        assert (found.low, found.high) == (None, None)
        assert (estimate.value, estimate.std_error) == (0.0, 0.0)
        if not (method == "likelihood" and estimate.estimator == "mc"):
            assert "no two trajectories differ" in found.reason
            assert "betting with bounds=Bounds(reward=...)" in found.reason


@pytest.mark.parametrize("method", PROMISED)
def test_intervals_that_promise_something_for_finite_samples_stay(method):
    log = bounded_log(1, 200, 4).with_columns(reward=0.0)
    for estimator in ("mc", "step-is"):
        ev = op.evaluate(log, horizon=4, estimators=[estimator], bounds=BOUNDS)
        found = ev[estimator].interval(method=method, side="lower")
        assert found.low is not None
        assert found.low <= 0


def test_reg_from_one_first_state_has_no_interval():
    ev = op.evaluate(op.demo_log(), discount=op.demo.DEMO_DISCOUNT, estimators=["reg", "dr"])
    assert (ev["reg"].std_error, ev["reg"].low, ev["reg"].high) == (0.0, None, None)
    assert "bias of its model: ask for dr" in ev["reg"].reason
    assert ev["dr"].low < op.demo_value() < ev["dr"].high


@pytest.mark.parametrize("method", ["normal", "t", "bootstrap", "bootstrap-bca"])
@pytest.mark.parametrize("side", SIDES)
def test_a_ratio_of_sums_that_no_trajectory_moves_has_no_interval(method, side):
    log = random_log(2, 30, 4, ragged=False).with_columns(reward=3.1, q_hat=0.0, v_hat=0.0)
    ev = op.evaluate(log, discount=0.5, estimators=["wis", "step-wis", "wdr"])
    for estimate in ev.estimates:
        found = estimate.interval(method=method, side=side)
        assert (found.low, found.high) == (None, None)
        assert "no trajectory moves" in found.reason
        assert estimate.value == pytest.approx(3.1 * 1.875, rel=1e-12)


def test_one_reading_learns_as_little():
    log = random_log(2, 30, 4, ragged=False).with_columns(reward=3.1)
    found = op.evaluate(log, estimators=["step-wis"], passes=1)["step-wis"].interval(method="bootstrap")
    assert (found.low, found.high) == (None, None)
    assert "no resample of step-wis differs" in found.reason


def exact_model(n=40, seed=5):
    """A deterministic chain with Q̂ = Q, whose values of dr differ by rounding alone."""
    rng = np.random.default_rng(seed)
    rewards, gamma = np.array([0.1, 0.7, 1.3]), 0.9
    q = [sum(gamma ** (k - t) * rewards[k] for k in range(t, 3)) for t in range(3)]
    log = skeleton([3] * n)
    columns = {"reward": rewards, "q_hat": q, "v_hat": q}
    ratio = pl.Series(rng.uniform(0.2, 3.0, 3 * n))
    return log.with_columns(
        ratio=ratio, **{name: pl.Series(np.tile(values, n)) for name, values in columns.items()}
    ), gamma


@pytest.mark.parametrize("method", LEARNT)
def test_values_that_differ_by_rounding_do_not_differ(method):
    log, gamma = exact_model()
    ev = op.evaluate(log, discount=gamma, estimators=["dr"])
    assert 0 < ev["dr"].std_error < 1e-14
    found = ev["dr"].interval(method=method)
    assert (found.low, found.high) == (None, None)
    assert "by more than rounding" in found.reason


def test_pooled_estimates_have_no_interval_either():
    walk = Walk()
    log = walk.simulate(walk.behavior, 100, seed=1).with_columns(reward=0.0)
    cf = op.cross_fit(log, walk, policy=walk.policies["eager"], estimators=["mc", "step-is", "dr"])
    for estimate in cf.evaluation.estimates:
        assert (estimate.value, estimate.low, estimate.high) == (0.0, None, None)
    assert cf.table["low"].null_count() == cf.table.height


@pytest.mark.parametrize("score", [{"caution": 1.0}, {"interval": "t"}, {"interval": "bootstrap"}])
def test_a_score_whose_error_is_not_known_is_no_bound(score):
    walk = Walk()
    log = walk.simulate(walk.behavior, 100, seed=1).with_columns(reward=0.0)
    arguments = {"generator": {"eager": walk.policies["eager"]}, "estimator": "step-is", "against": "value"}
    found = op.improve(log, walk, **arguments, **score)
    assert found.winner == "behavior"
    assert found.candidates["score"].to_list() == [None]
    assert "no two trajectories differ" in found.candidates["reason"].item()


def test_without_caution_a_point_estimate_is_a_score():
    walk = Walk()
    log = walk.simulate(walk.behavior, 100, seed=1).with_columns(reward=0.0)
    arguments = {"generator": {"eager": walk.policies["eager"]}, "estimator": "step-is", "against": "value"}
    found = op.improve(log, walk, **arguments, caution=0)
    assert found.candidates["score"].item() == 0.0


def test_resamples_that_cannot_tell_values_apart_give_no_interval():
    """The columns of resamples have units, here 7e-15, in which these values are one."""
    estimate = op.evaluate(one_step_log([0.1] * 50 + [0.1 + 2e-15]))["mc"]
    found = estimate.interval(0.9, "bootstrap")
    assert (found.low, found.high) == (None, None)
    assert estimate.interval(0.9, "t").low < 0.1


@pytest.mark.parametrize("method", ["bootstrap", "bootstrap-bca"])
@pytest.mark.parametrize("off", [1e-9, -1e-9])
def test_a_bootstrap_interval_holds_its_own_estimate(method, off):
    """Resamples are made of rounded columns: those that are equal to the estimate can lie a little beside it."""
    estimate = op.evaluate(one_step_log([1.0, 2.0, 4.0]))["mc"]
    theta = estimate.value + off
    replicates = np.full(401, theta)
    replicates[:3] = theta - 1e-6 * math.copysign(1, off)
    estimate.samples.kept[("bootstrap", "behavior", "mc", 401, 0)] = bootstrap.Bootstrap(theta, replicates, 0.0)
    found = estimate.interval(0.9, method, replicates=401)
    assert found.low <= estimate.value <= found.high
    assert estimate.value in (found.low, found.high)


def nearly_constant(seed, horizon, n=4000):
    """Trajectories that are all alike, with a value of about 1e15, but for the last reward of one."""
    rng = np.random.default_rng(seed)
    log = skeleton([horizon] * n)
    tiled = {
        "reward": rng.uniform(0.5e15, 1.5e15, horizon),
        "behavior_prob": rng.uniform(0.3, 0.9, horizon),
        "target_prob": rng.uniform(0.3, 0.9, horizon),
    }
    log = log.with_columns(**{name: pl.Series(np.tile(values, n)) for name, values in tiled.items()})
    more = (pl.col("episode") == 0) & (pl.col("step") == horizon - 1)
    return log.with_columns(reward=pl.col("reward") + pl.when(more).then(512.0).otherwise(0.0))


def exact_step_is(episode, discount):
    """Σ γ^{t−1} ρ_{1:t} r_t for the numbers in the log, in rationals."""
    value, weight, gamma = Fraction(0), Fraction(1), Fraction(1)
    for row in episode.iter_rows(named=True):
        weight *= Fraction(row["target_prob"]) / Fraction(row["behavior_prob"])
        value += gamma * weight * Fraction(row["reward"])
        gamma *= Fraction(discount)
    return value


@pytest.mark.parametrize("method", ["t", "normal"])
def test_an_interval_is_no_narrower_than_the_rounding_of_its_arithmetic(method):
    missed = 0
    for seed in range(12):
        log = nearly_constant(seed, horizon=seed % 4 + 5)
        estimate = op.evaluate(log, discount=0.97, estimators=["step-is"])["step-is"]
        one, other = (exact_step_is(log.filter(pl.col("episode") == i), 0.97) for i in (0, 1))
        truth = (one + (estimate.episodes - 1) * other) / estimate.episodes
        found = estimate.interval(method=method)
        half = student_quantile(0.975, estimate.episodes - 1) * estimate.std_error
        missed += abs(Fraction(estimate.value) - truth) > half
        assert Fraction(found.low) < truth < Fraction(found.high)
        lower, upper = (estimate.interval(method=method, side=side) for side in ("lower", "upper"))
        assert Fraction(lower.low) < truth < Fraction(upper.high)
        if half < rounding(estimate):
            assert found.assumptions["rounding"] == rounding(estimate)
    assert missed > 0  # by the standard error alone


def test_values_of_1e15_that_differ_by_a_little_have_an_interval_that_holds_their_mean():
    values = [1e15 + 8.0 * (i == 0) for i in range(999)]
    estimate = op.evaluate(one_step_log(values))["mc"]
    truth = sum(map(Fraction, values)) / 999
    assert Fraction(estimate.low) < truth < Fraction(estimate.high)
    assert estimate.interval(0.4, side="lower").low > estimate.interval(0.6, side="lower").low


def test_an_ordinary_interval_is_not_widened():
    estimate = op.evaluate(op.demo_log(), discount=0.9, estimators=["dr"])["dr"]
    found = estimate.interval(0.9)
    quantile = student_quantile(0.95, estimate.episodes - 1)
    assert found.high == estimate.value + quantile * estimate.std_error
    assert "rounding" not in found.assumptions


def test_t_skew_is_no_narrower_than_the_rounding_of_its_arithmetic():
    rewards = np.full(200_000, 1e8)
    rewards[::10_000] += 1e-6
    found = op.evaluate(one_step_log(rewards))["mc"].interval(0.95, "t-skew")
    assert found.low is None or found.low < found.high
