"""Errors of small samples: trajectories left out one by one, skewness taken out, each against exact arithmetic."""

from fractions import Fraction

import mpmath
import numpy as np
import offpolicy as op
import polars as pl
import pytest
import reference
from logs import bits, episodes_of, one_step_log, random_log
from offpolicy.intervals import leave_one_out
from offpolicy.intervals.leave_one_out import Spread
from offpolicy.intervals.skewed import inverse
from offpolicy.logs.trajectories import Samples
from quantiles import t_quantile

WEIGHTED = ("wis", "step-wis", "wdr")
GAMMA, HORIZON = 0.9, 5


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(35):
        yield


def evaluate(log, **options):
    return op.evaluate(log, discount=GAMMA, horizon=HORIZON, **options)


def coarse_log(seed, n):
    """A random log of numbers with few digits, so that fractions stay small."""
    log = random_log(seed, episodes=n, horizon=HORIZON)
    numbers = pl.exclude("episode", "step", "behavior_prob", "target_prob")
    return log.with_columns((numbers * 8).round() / 8, (pl.col("behavior_prob", "target_prob") * 4).ceil() / 4)


def exact_spread(log, estimator):
    """SE, ν and γ by leaving out each episode and evaluating the rest, in rational numbers up to the moments."""
    steps = [reference.exact_steps(episode) for episode in episodes_of(log)]
    gamma = Fraction(GAMMA)

    def theta(some):
        if estimator in WEIGHTED:
            return reference.mean(reference.normalised_values(reference.absorbed(some, HORIZON), estimator, gamma))
        return reference.mean([reference.per_trajectory(each, estimator, gamma, HORIZON, Fraction(0)) for each in some])

    n, whole = len(steps), theta(steps)
    exact = [(n - 1) * (whole - theta(steps[:i] + steps[i + 1 :])) for i in range(n)]
    d = [mpmath.mpf(x.numerator) / x.denominator for x in exact]
    mean = mpmath.fsum(d) / n
    square, cube, fourth = (mpmath.fsum((x - mean) ** power for x in d) / n for power in (2, 3, 4))
    degrees = 2 / ((fourth / square**2 - 3) / n + mpmath.mpf(2) / (n - 1))
    error = mpmath.sqrt(mpmath.fsum(x * x for x in d) / (n * (n - 1)))
    return float(error), float(min(n - 1, degrees)), float(cube / square**1.5)


@pytest.mark.parametrize("estimator", [*WEIGHTED, "mc", "is", "step-is", "dr", "dr-bsl", "dr-v2", "reg"])
def test_the_interval_without_skewness_inverts_its_transformation(estimator):
    log = coarse_log(4, 10)
    estimate = evaluate(log, estimators=[estimator], baseline=0.0)[estimator]
    error, degrees, skewness = exact_spread(log, estimator)
    error = max(error, estimate.std_error)
    found = estimate.interval(0.9, "t-skew")
    assert (found.method, found.kind) == ("t-skew", "asymptotic")
    assert found.assumptions["degrees"] == pytest.approx(degrees, rel=1e-9)
    assert found.assumptions["skewness"] == pytest.approx(skewness, rel=1e-7, abs=1e-9)
    a, q = mpmath.mpf(skewness) / (3 * mpmath.sqrt(10)), t_quantile(mpmath.mpf("0.95"), degrees)
    for end, outwards in ((found.low, 1), (found.high, -1)):
        t = (mpmath.mpf(estimate.value) - end) / error
        transformed = t + a * t**2 + a**2 * t**3 / 3 + a / 2
        assert float(min(outwards * t, outwards * transformed)) == pytest.approx(float(q), rel=1e-6)


@pytest.mark.parametrize("estimator", WEIGHTED)
def test_t_of_a_weighted_estimator_leaves_out_each_trajectory_of_a_small_sample(estimator):
    log = coarse_log(4, 10)
    estimate = evaluate(log, estimators=[estimator])[estimator]
    error, degrees, _ = exact_spread(log, estimator)
    assert error > estimate.std_error
    found = estimate.interval(0.9)
    half = float(t_quantile(mpmath.mpf("0.95"), degrees)) * error
    assert (found.low, found.high) == pytest.approx((estimate.value - half, estimate.value + half), rel=1e-8)
    assert found.assumptions["factor"] == pytest.approx(error / estimate.std_error, rel=1e-9)
    assert found.assumptions["degrees"] == pytest.approx(degrees, rel=1e-9)


@pytest.mark.parametrize("estimator", WEIGHTED)
def test_t_of_a_large_effective_sample_reads_nothing_again(estimator, monkeypatch):
    log = random_log(7, episodes=30, horizon=HORIZON)
    estimate = evaluate(log, estimators=[estimator])[estimator]
    assert "factor" in estimate.interval().assumptions
    monkeypatch.setattr(leave_one_out, "MANY", estimate.ess)
    assert "factor" not in estimate.interval().assumptions


def test_the_influence_of_an_average_is_its_distance_from_the_mean():
    log = coarse_log(5, 12)
    for estimator in ("is", "step-is", "dr"):
        estimate = evaluate(log, estimators=[estimator])[estimator]
        error, _, _ = exact_spread(log, estimator)
        assert estimate.std_error == pytest.approx(error, rel=1e-12)
        assert "factor" not in estimate.interval(method="t").assumptions


def test_symmetric_values_without_heavy_tails_give_t():
    estimate = op.evaluate(one_step_log([-1.0, 1.0, -2.0, 2.0, 0.0, 0.5, -0.5]))["mc"]
    for side in ("two", "lower", "upper"):
        skew, t = (estimate.interval(0.9, method, side=side) for method in ("t-skew", "t"))
        for end, expected in ((skew.low, t.low), (skew.high, t.high)):
            assert end is expected is None or end == pytest.approx(expected, rel=1e-12)
    assert skew.assumptions["degrees"] == 6


def test_bounds_move_to_the_side_of_the_long_tail():
    right = [0.0] * 15 + [1.0, 2.0, 5.0]
    for sign in (1, -1):
        estimate = op.evaluate(one_step_log([sign * x for x in right]))["mc"]
        skew = estimate.interval(0.95, "t-skew")
        degrees = skew.assumptions["degrees"]
        half = skew.assumptions["std_error"] * float(t_quantile(mpmath.mpf("0.975"), degrees))
        below, above = (estimate.value - skew.low) / half, (skew.high - estimate.value) / half
        short, long = (below, above)[::sign]
        assert (short, long > 1.2) == (pytest.approx(1, rel=1e-9), True)
    mirrored = op.evaluate(one_step_log(right))["mc"].interval(0.95, "t-skew")
    assert (mirrored.low, mirrored.high) == pytest.approx((-skew.high, -skew.low), rel=1e-12)


@pytest.mark.parametrize("a", [-0.5, -1e-3, -1e-12, 1e-300, 1e-9, 0.02, 1 / 3, 2.0])
def test_the_transformation_is_inverted_exactly_and_never_decreases(a):
    xs = [-40.0, -2.0, -0.1, 0.0, 1e-8, 0.3, 1.96, 12.7]
    found = [inverse(x, a) for x in xs]
    assert found == sorted(found)
    for x, t in zip(xs, map(mpmath.mpf, found), strict=True):
        big = mpmath.mpf(a)
        assert float(t + big * t**2 + big**2 * t**3 / 3 + big / 2) == pytest.approx(x, rel=1e-12, abs=1e-13)


def test_a_spread_does_not_depend_on_the_unit_or_on_the_order():
    values = np.random.default_rng(6).standard_exponential(50) - 1
    small, same = Spread.of(values * 2.0**-900), Spread.of(np.sort(values))
    assert same == Spread.of(values)
    assert (small.degrees, small.skewness) == (same.degrees, same.skewness)
    assert small.error == pytest.approx(same.error * 2.0**-900, rel=1e-15)
    assert Spread.of(np.zeros(4)) == Spread(0.0, 3.0, 0.0)


def test_opposite_values_have_the_opposite_skewness_to_the_last_bit():
    values = np.random.default_rng(8).standard_exponential((200, 3)) - 1
    for each in values:
        assert Spread.of(-each).skewness == -Spread.of(each).skewness


def test_a_step_that_one_episode_has_to_itself_adds_nothing():
    """Without it the estimate would have no value."""
    log = pl.DataFrame(
        {
            "episode": [0, 0, 1, 1, 2, 2],
            "step": [0, 1] * 3,
            "reward": [1.0, 5.0, 0.0, 7.0, 0.5, 9.0],
            "ratio": [1.0, 1.0, 0.5, 0.0, 1.5, 0.0],
        }
    )
    first = log.filter(pl.col("step") == 0)
    both = [op.evaluate(each, estimators=["step-wis"])["step-wis"].interval(0.9) for each in (log, first)]
    assert both[0].assumptions == both[1].assumptions
    assert both[0].low == pytest.approx(both[1].low + 5, rel=1e-12)


def test_averages_have_their_t_without_another_reading(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the log was read again")

    log = random_log(7, episodes=9, horizon=HORIZON)
    for name in ("values", "influence", "steps"):
        monkeypatch.setattr(Samples, name, refuse)
    ev = evaluate(log, estimators=["mc", "is", "step-is", "dr", "reg"])
    assert ev.table["low"].null_count() == 0
    once = evaluate(log, estimators=["wis"], passes=1)
    assert once["wis"].low is not None
    assert "factor" not in once["wis"].interval().assumptions


@pytest.mark.parametrize("estimator", WEIGHTED)
def test_a_large_log_keeps_the_error_of_its_influence_values(estimator, monkeypatch):
    log = random_log(8, episodes=30, horizon=HORIZON)
    near = evaluate(log, estimators=[estimator])[estimator].interval(0.9, "t-skew")
    monkeypatch.setattr(leave_one_out, "LARGEST", 30 * HORIZON - 1)
    estimate = evaluate(log, estimators=[estimator])[estimator]
    t, skew = estimate.interval(0.9, "t"), estimate.interval(0.9, "t-skew")
    half = float(t_quantile(mpmath.mpf("0.95"), 29)) * estimate.std_error
    assert (t.low, t.high) == pytest.approx((estimate.value - half, estimate.value + half), rel=1e-9)
    influence = estimate.samples.influence(estimate.policy, estimator)["value"].to_numpy()
    assert skew.assumptions["skewness"] == pytest.approx(Spread.of(influence).skewness, rel=1e-9)
    assert skew.assumptions["std_error"] == pytest.approx(estimate.std_error, rel=1e-9)
    assert skew.assumptions["std_error"] <= near.assumptions["std_error"]


@pytest.mark.parametrize("estimator", WEIGHTED)
def test_an_equal_reward_leaves_no_error(estimator):
    log = random_log(9, episodes=8, horizon=1).with_columns(reward=0.3, q_hat=0.3, v_hat=0.3)
    estimate = op.evaluate(log, estimators=[estimator])[estimator]
    if estimator == "wis":
        assert estimate.std_error == 0
    for method in ("t", "t-skew"):
        found = estimate.interval(0.9, method)
        assert found.low is None or found.high - found.low < 1e-12


def test_ids_and_order_change_no_bit():
    log = random_log(10, episodes=25, horizon=HORIZON)
    turned = pl.concat(log.partition_by("episode", maintain_order=True)[::-1])
    renamed = turned.with_columns(pl.col("episode") * 7 + 3)
    for method in ("t", "t-skew"):
        assert bits(evaluate(log, interval=method)) == bits(evaluate(renamed, interval=method))
