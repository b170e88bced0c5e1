"""Properties of the ends of intervals (STATISTICS 6.4), on logs that hypothesis makes up: what turns them round."""

import math
from statistics import NormalDist

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from logs import skeleton
from offpolicy import intervals
from offpolicy.intervals import betting
from scipy import stats

H, GAMMA = 6, 0.9
BOUNDS = op.Bounds(reward=(-1.0, 1.0), ratio=2.0, q=(-2.0, 2.0))
#: Two-sided, and by formulas that treat both sides alike to the last bit, as BCa's Φ⁻¹ does not.
ALIKE = [method for method in intervals.METHODS if method not in ("hcope", "bootstrap-bca")]
TWO_SIDED = [method for method in intervals.METHODS if method != "hcope"]
LEVELS = st.floats(0.5, 0.99)


@st.composite
def bounded_logs(draw, min_episodes=3, max_episodes=12):
    """Within the bounds; some ratios are 0, but not those of the first episode."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lengths = rng.integers(1, H + 1, draw(st.integers(min_episodes, max_episodes)))
    log = skeleton(lengths)
    never = (rng.random(log.height) < draw(st.sampled_from([0.0, 0.2]))) & (log["episode"].to_numpy() > 0)

    def column(low, high):
        pool = draw(st.lists(st.floats(low, high), min_size=1, max_size=6))
        ordinary = [x if abs(x) > 1e-200 else 0.0 for x in pool]  # a power of 2 times these is no subnormal number
        return rng.choice(ordinary, log.height)

    return log.with_columns(
        reward=column(-1.0, 1.0),
        ratio=np.where(never, 0.0, column(0.1, 2.0)),
        q_hat=column(-2.0, 2.0),
        v_hat=column(-2.0, 2.0),
        r_hat=column(-1.0, 1.0),
    )


def evaluate(log, bounds=BOUNDS):
    return op.evaluate(log, discount=GAMMA, horizon=H, bounds=bounds, estimators=["step-is", "step-wis", "dr"])


def by_method(one, other, methods):
    """The same estimate of two evaluations, and a method, in all combinations."""
    return ((*pair, method) for pair in zip(one.estimates, other.estimates, strict=True) for method in methods)


def ends(estimate, level, method, side="two"):
    found = estimate.interval(level, method, side=side, replicates=39)
    return found.low, found.high


@given(bounded_logs(), LEVELS)
def test_opposite_rewards_swap_the_ends(log, level):
    opposite = log.with_columns(-pl.col("reward", "q_hat", "v_hat", "r_hat"))
    for plus, minus, method in by_method(evaluate(log), evaluate(opposite), ALIKE):
        low, high = ends(plus, level, method)
        assert ends(minus, level, method) == (None if high is None else -high, None if low is None else -low), method


@given(bounded_logs(max_episodes=40), LEVELS)
def test_two_sides_are_two_bounds_of_half_the_level(log, level):
    """There is no interval where one of them cannot be had."""
    ev, half = evaluate(log), 1 - (1 - level) / 2
    for estimate, _, method in by_method(ev, ev, TWO_SIDED):
        bounds = ends(estimate, half, method, "lower")[0], ends(estimate, half, method, "upper")[1]
        expected = (None, None) if None in bounds else pytest.approx(bounds, rel=1e-9, abs=1e-9)
        assert ends(estimate, level, method) == expected, method


def by_normal(estimate, m):
    return NormalDist().cdf((estimate.value - m) / estimate.std_error)


def by_student(estimate, m):
    about = estimate.interval(0.9, "t").assumptions
    return stats.t.cdf((estimate.value - m) / about["std_error"], about.get("degrees", estimate.episodes - 1))


def by_skewed(estimate, m):
    about = estimate.interval(0.9, "t-skew").assumptions
    t, a = (estimate.value - m) / about["std_error"], about["skewness"] / (3 * math.sqrt(estimate.episodes))
    return stats.t.cdf(min(t, t + a * t**2 + a**2 * t**3 / 3 + a / 2), about["degrees"])


def by_hoeffding(estimate, m):
    low, high = BOUNDS.range(estimate.estimator, estimate.terms)
    return 1 - math.exp(-2 * estimate.episodes * ((estimate.value - m) / (high - low)) ** 2)


def by_bernstein(estimate, m):
    """ln(2/δ) = x² solves the quadratic equation a x² + b x = x̄ - m."""
    low, high = BOUNDS.range(estimate.estimator, estimate.terms)
    a, b = 7 * (high - low) / (3 * (estimate.episodes - 1)), math.sqrt(2) * estimate.std_error
    x = (math.sqrt(b * b + 4 * a * (estimate.value - m)) - b) / (2 * a)
    return 1 - 2 * math.exp(-x * x)


def by_likelihood(estimate, m):
    about = estimate.interval(0.9, "likelihood").assumptions
    return stats.t.cdf((about["centre"] - m) / about["std_error"], estimate.episodes - 2)


INVERSE = {
    "normal": by_normal,
    "t": by_student,
    "t-skew": by_skewed,
    "hoeffding": by_hoeffding,
    "bernstein": by_bernstein,
    "likelihood": by_likelihood,
}


@given(bounded_logs(), LEVELS)
def test_the_level_comes_back_from_the_end(log, level):
    """The confidence with which the value is above m, where m is the lower bound of that confidence."""
    ev = evaluate(log)
    for estimate, _, method in by_method(ev, ev, INVERSE):
        found = estimate.interval(level, method, side="lower")
        if found.low is None or found.assumptions.get("std_error", 1.0) < 1e-6:
            continue  # withheld, or so narrow that rounding shows
        assert INVERSE[method](estimate, found.low) == pytest.approx(level, abs=1e-6), method


@given(bounded_logs(min_episodes=10, max_episodes=40), LEVELS)
def test_the_capital_at_a_betting_bound_is_what_the_level_says(log, level):
    """K(m) falls in m and passes 1/δ at the bound, with one variable and with two."""
    estimate, delta = evaluate(log)["step-is"], 1 - level
    first, second = (estimate.sketch(by=by) for by in ("rewards", "ratios"))
    for sketches in ([first], [first, second]):
        m, played = betting.lower(first, delta, *sketches[1:]), list(betting.rounds(first, delta, *sketches[1:]))
        mean = min((game.base + game.mean for game in played), default=0.0)
        step = 2.0**-38 * mean
        if 2 * step < m:
            assert m <= mean
            before, after = betting.log_capital(played, np.array([m - step, m + step]), delta)
            assert before >= math.log(1 / delta) - 1e-9
            assert after <= math.log(1 / delta) + 1e-9 or m > mean - step


@given(bounded_logs(min_episodes=3, max_episodes=40), st.floats(1e-9, 0.5))
def test_capital_falls_in_the_mean_that_is_tried(log, delta):
    estimate = evaluate(log)["step-is"]
    sketches = [estimate.sketch(by=by) for by in ("rewards", "ratios")]
    played = list(betting.rounds(sketches[0], delta, *sketches[1:]))
    low = max((game.base for game in played), default=0.0)
    high = max((game.base + game.x.max() for game in played), default=1.0)
    tried = max(low, 0.0) + (high - max(low, 0.0)) * np.linspace(0.001, 1, 300)
    capital = np.minimum(betting.log_capital(played, tried, delta), math.log(1 / delta))
    assert (np.diff(capital) <= 1e-9 * (1 + np.abs(capital[1:]))).all()


@given(bounded_logs(), st.randoms(use_true_random=False))
def test_the_order_of_the_episodes_changes_no_bit_of_an_interval(log, rng):
    groups = log.partition_by("episode")
    rng.shuffle(groups)
    for one, other, method in by_method(evaluate(log), evaluate(pl.concat(groups)), intervals.METHODS):
        assert ends(one, 0.9, method) == ends(other, 0.9, method), method


@given(bounded_logs(), st.integers(-3, 3))
def test_ends_scale_with_rewards(log, k):
    """By 2^(40 k), which no sum rounds."""
    factor = 2.0 ** (40 * k)
    ranges = {name: tuple(factor * x for x in getattr(BOUNDS, name)) for name in ("reward", "q")}
    scaled = log.with_columns(pl.col("reward", "q_hat", "v_hat", "r_hat") * factor)
    after = evaluate(scaled, op.Bounds(ratio=2.0, **ranges))
    for one, other, method in by_method(evaluate(log), after, intervals.METHODS):
        for old, new in zip(ends(one, 0.9, method), ends(other, 0.9, method), strict=True):
            expected = None if old is None else pytest.approx(factor * old, rel=1e-9, abs=1e-9 * factor)
            assert new == expected, method
