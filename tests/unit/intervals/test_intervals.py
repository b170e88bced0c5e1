"""Intervals against mpmath's quantiles and the recursions of the ranges."""

import math

import mpmath
import offpolicy as op
import polars as pl
import pytest
from logs import bounded_log, one_step_log, skeleton
from offpolicy.intervals.normal import student_quantile
from quantiles import normal_quantile, t_quantile

LEVELS = [0.5, 0.8, 0.9, 0.95, 0.99, 0.999]


def near(expected):
    return pytest.approx(float(expected), rel=1e-10, abs=1e-13)


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(35):
        yield


def upper(confidence):
    """1-δ/2 of a two-sided interval."""
    return (1 + mpmath.mpf(confidence)) / 2


def test_the_quantiles_of_this_file_are_right():
    assert float(normal_quantile(mpmath.mpf("0.975"))) == pytest.approx(1.959963984540054, rel=1e-15)
    assert t_quantile(0.75, 1) == pytest.approx(1.0, rel=1e-20)
    assert float(t_quantile(mpmath.mpf("0.975"), 1)) == pytest.approx(math.tan(0.475 * math.pi), rel=1e-13)
    p = mpmath.mpf("0.975")
    assert t_quantile(p, 2) == pytest.approx((2 * p - 1) / mpmath.sqrt(2 * p * (1 - p)), rel=1e-20)
    assert float(t_quantile(p, 10)) == pytest.approx(2.228138851986274, rel=1e-14)


@pytest.mark.parametrize("confidence", LEVELS)
def test_normal_interval(log, confidence):
    ev = op.evaluate(log, discount=0.9, confidence=confidence, interval="normal")
    for row in ev.table.filter(pl.col("estimator") != "magic").iter_rows(named=True):  # which has no interval
        half = normal_quantile(upper(confidence)) * row["std_error"]
        assert row["low"] == near(row["value"] - half)
        assert row["high"] == near(row["value"] + half)


@pytest.mark.parametrize("confidence", LEVELS)
@pytest.mark.parametrize("n", [2, 3, 6, 31, 1001])
def test_t_interval_has_n_minus_one_degrees_of_freedom(n, confidence):
    estimate = op.evaluate(one_step_log([float(i % 7) for i in range(n)]), confidence=confidence)["mc"]
    half = t_quantile(upper(confidence), n - 1) * estimate.std_error
    assert estimate.low == near(estimate.value - half)
    assert estimate.high == near(estimate.value + half)


def test_an_interval_says_what_it_is(log):
    estimate = op.evaluate(log, discount=0.9)["dr"]
    for method in ("normal", "t"):
        interval = estimate.interval(confidence=0.9, method=method)
        assert (interval.method, interval.kind, interval.confidence) == (method, "asymptotic", 0.9)
        assert interval.low < estimate.value < interval.high
    wide = estimate.interval(confidence=0.99, method="t")
    assert wide.low < interval.low
    assert wide.high > interval.high


def step_is_range(ratios, reward, gamma):
    """U_t = B_t·max(0, b+γU_{t+1}), L_t = B_t·min(0, a+γL_{t+1})."""
    low = high = 0.0
    for ratio in reversed(ratios):
        low = ratio * min(0.0, reward[0] + gamma * low)
        high = ratio * max(0.0, reward[1] + gamma * high)
    return low, high


def dr_range(ratios, reward, q_low, q_high, gamma):
    """U_t = u_t + B_t·max(0, b+γU_{t+1}-l_t), L_t = l_t + B_t·min(0, a+γL_{t+1}-u_t)."""
    low = high = 0.0
    for ratio, least, most in reversed(list(zip(ratios, q_low, q_high, strict=True))):
        high, low = (
            most + ratio * max(0.0, reward[1] + gamma * high - least),
            least + ratio * min(0.0, reward[0] + gamma * low - most),
        )
    return low, high


def hoeffding(value, low, high, n, confidence):
    half = (high - low) * math.sqrt(math.log(2 / (1 - confidence)) / (2 * n))
    return value - half, value + half


@pytest.mark.parametrize("reward", [(0.0, 1.0), (-1.0, 0.0), (-2.0, 3.0), (0.5, 1.0), (-3.0, -1.0)])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_hoeffding_of_step_is(reward, confidence):
    log = bounded_log(41, 200, 4, reward)
    ev = op.evaluate(log, discount=0.9, estimators=["step-is"], horizon=4)
    interval = ev["step-is"].interval(
        confidence=confidence, method="hoeffding", bounds=op.Bounds(reward=reward, ratio=2.0)
    )
    low, high = step_is_range([2.0] * 4, reward, 0.9)
    expected = hoeffding(ev["step-is"].value, low, high, 200, confidence)
    assert (interval.low, interval.high) == (near(expected[0]), near(expected[1]))
    assert (interval.method, interval.kind) == ("hoeffding", "finite-sample")
    assert sorted(interval.assumptions.values()) == [near(low), near(high)]


@pytest.mark.parametrize("ratios", [[2.0, 3.0, 2.5, 2.0], [4.0, 2.0, 2.0, 2.0]])
def test_hoeffding_with_a_bound_on_the_ratio_of_each_step(ratios):
    log = bounded_log(41, 50, 4, (-1.0, 2.0))
    bounds = op.Bounds(reward=(-1.0, 2.0), ratio=ratios)
    ev = op.evaluate(log, discount=0.9, estimators=["step-is"], interval="hoeffding", bounds=bounds, horizon=4)
    low, high = step_is_range(ratios, (-1.0, 2.0), 0.9)
    expected = hoeffding(ev["step-is"].value, low, high, 50, 0.95)
    assert (ev["step-is"].low, ev["step-is"].high) == (near(expected[0]), near(expected[1]))


@pytest.mark.parametrize("reward", [(0.0, 1.0), (-1.0, 0.0), (-2.0, 3.0)])
@pytest.mark.parametrize(
    ("least", "most"), [(-0.5, 0.5), ([-2.0, -1.5, -1.0, -0.5], [0.5, 1.0, 1.5, 2.0])], ids=["flat", "step"]
)
def test_hoeffding_of_dr(reward, least, most):
    log = bounded_log(41, 80, 4, reward)
    bounds = op.Bounds(reward=reward, ratio=2.0, q=(least, most))
    ev = op.evaluate(log, discount=0.9, estimators=["dr"], interval="hoeffding", bounds=bounds, horizon=4)
    q_low = least if isinstance(least, list) else [least] * 4
    q_high = most if isinstance(most, list) else [most] * 4
    low, high = dr_range([2.0] * 4, reward, q_low, q_high, 0.9)
    expected = hoeffding(ev["dr"].value, low, high, 80, 0.95)
    assert (ev["dr"].low, ev["dr"].high) == (near(expected[0]), near(expected[1]))


def test_hoeffding_ranges_reach_to_the_horizon_that_is_given():
    log = bounded_log(41, 50, 4)
    bounds = op.Bounds(reward=(0.0, 1.0), ratio=2.0)
    arguments = {"discount": 0.9, "estimators": ["step-is"], "interval": "hoeffding", "bounds": bounds}
    ev = op.evaluate(log, horizon=6, **arguments)
    low, high = step_is_range([2.0] * 6, (0.0, 1.0), 0.9)
    expected = hoeffding(ev["step-is"].value, low, high, 50, 0.95)
    assert (ev["step-is"].low, ev["step-is"].high) == (near(expected[0]), near(expected[1]))


@pytest.mark.parametrize("estimator", ["wis", "step-wis", "wdr"])
def test_hoeffding_is_refused_for_weighted_estimators(log, estimator):
    bounds = op.Bounds(reward=(-5.0, 5.0), ratio=10.0, q=(-5.0, 5.0))
    asked = op.evaluate(log, estimators=[estimator], interval="hoeffding", bounds=bounds)[estimator]
    later = op.evaluate(log, estimators=[estimator])[estimator]
    for interval in (asked.interval(), later.interval(method="hoeffding", bounds=bounds)):
        assert (interval.low, interval.high) == (None, None)
        assert estimator in interval.reason
    assert (asked.low, asked.high) == (None, None)


def test_hoeffding_needs_bounds(log):
    estimate = op.evaluate(log, estimators=["step-is"])["step-is"]
    interval = estimate.interval(method="hoeffding")
    assert (interval.low, interval.high) == (None, None)
    assert "bounds" in interval.reason


def test_an_interval_wider_than_the_possible_returns_is_called_vacuous():
    log = bounded_log(41, 5, 4)
    bounds = op.Bounds(reward=(0.0, 1.0), ratio=2.0)
    estimate = op.evaluate(log, estimators=["step-is"], horizon=4)["step-is"]
    vacuous = estimate.interval(confidence=0.95, method="hoeffding", bounds=bounds)
    assert "vacuous" in f"{vacuous.reason} {vacuous.assumptions}"
    many = skeleton([1] * 5000).with_columns(reward=0.5, ratio=1.0)
    estimate = op.evaluate(many, estimators=["step-is"], horizon=1)["step-is"]
    sharp = estimate.interval(confidence=0.95, method="hoeffding", bounds=bounds)
    assert "vacuous" not in f"{sharp.reason} {sharp.assumptions}"


def test_one_trajectory_has_a_finite_sample_interval_and_no_asymptotic_one():
    log = skeleton([1]).with_columns(reward=0.5, ratio=1.0)
    estimate = op.evaluate(log, estimators=["step-is"], horizon=1)["step-is"]
    for method in ("normal", "t"):
        interval = estimate.interval(confidence=0.9, method=method)
        assert (interval.low, interval.high) == (None, None)
        assert interval.reason
    bounds = op.Bounds(reward=(0.0, 1.0), ratio=1.0)
    interval = estimate.interval(confidence=0.9, method="hoeffding", bounds=bounds)
    assert (interval.low, interval.high) == pytest.approx(hoeffding(0.5, 0.0, 1.0, 1, 0.9), rel=1e-12)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, 95.0, float("nan")])
def test_a_confidence_that_is_no_probability_is_refused(log, confidence):
    with pytest.raises(op.UsageError, match="confidence"):
        op.evaluate(log, confidence=confidence)


def test_an_unknown_interval_is_refused_with_the_known_ones(log):
    with pytest.raises(op.UsageError, match="hoeffding"):
        op.evaluate(log, interval="hoefding")


@pytest.mark.parametrize("nu", [99_999, 100_000, 100_001, 10_000_000])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999999])
def test_the_t_quantile_of_huge_logs(nu, confidence):
    p = 0.5 + confidence / 2
    assert student_quantile(p, nu) == pytest.approx(float(t_quantile(p, nu)), rel=1e-12)


def test_hoeffding_is_refused_where_the_range_is_not_known_beforehand():
    log = op.demo_log(episodes=50)
    bounds = op.Bounds(reward=(0, 1), ratio=2, q=(0, 10))
    seen = op.evaluate(log, interval="hoeffding", bounds=bounds)["step-is"]
    assert seen.low is None
    assert "horizon=" in seen.reason
    given = op.evaluate(log, interval="hoeffding", bounds=bounds, horizon=10)
    assert given["step-is"].low is not None
    assert "only if its model is right" in given["dr-v2"].reason
    moved = op.evaluate(log.with_columns(transition_ratio=1.0), interval="hoeffding", bounds=bounds, horizon=10)
    assert "transition_ratio" in moved["dr-v2"].reason


def test_an_interval_beyond_f64_is_withheld():
    log = pl.DataFrame({"episode": [0, 1], "step": [0, 0], "reward": [1e308, -1e308]})
    estimate = op.evaluate(log, estimators=["mc"])["mc"]
    assert (estimate.low, estimate.high) == (None, None)
    assert "beyond the range of f64" in estimate.reason


def test_a_level_that_rounds_to_certainty_is_refused():
    with pytest.raises(op.UsageError, match="confidence"):
        op.evaluate(op.demo_log(episodes=5), confidence=1 - 2**-53, interval="normal")
