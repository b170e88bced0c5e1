"""Empirical likelihood against the problem that it solves, and the exact sums that it is made of."""

import math
from fractions import Fraction

import numpy as np
import offpolicy as op
import polars as pl
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from linear_equations import solve
from logs import episodes_of, random_log
from offpolicy._util.exact_sums import exact_dot, exact_sum
from offpolicy.intervals.likelihood import SixSums
from scipy import stats

floats = st.floats(-1e100, 1e100, allow_nan=False)


@given(st.lists(floats, max_size=30))
def test_sums_are_exact(values):
    assert exact_sum(np.array(values, dtype=float)) == sum(map(Fraction, values), start=Fraction(0))


@given(st.lists(st.tuples(floats, floats), max_size=30))
def test_sums_of_products_are_exact(pairs):
    pairs = [(x, y) for x, y in pairs if 0 in (x, y) or abs(x * y) > 1e-200]
    x, y = (np.array([pair[k] for pair in pairs], dtype=float) for k in (0, 1))
    assert exact_dot(x, y) == sum((Fraction(a) * Fraction(b) for a, b in pairs), start=Fraction(0))


def distance(x, c, v):
    """min Σ (n q - 1)² with Σq = 1, Σqc = 1, Σqx = v, by the normal equations of p = nq - 1, in rationals."""
    n = len(x)
    rows = [[Fraction(1)] * n, c, x]
    right = [Fraction(0), n - sum(c), n * v - sum(x)]
    gram = [[sum(a * b for a, b in zip(one, other, strict=True)) for other in rows] for one in rows]
    multipliers = solve(gram, right)
    p = [sum(m * row[i] for m, row in zip(multipliers, rows, strict=True)) for i in range(n)]
    for row, value in zip(rows, right, strict=True):
        assert sum(a * b for a, b in zip(p, row, strict=True)) == value
    return sum(value * value for value in p)


@pytest.mark.parametrize("estimator", ["is", "step-is", "dr", "dr-bsl", "dr-v2"])
@pytest.mark.parametrize("side", ["two", "lower", "upper"])
def test_the_ends_are_where_the_distance_is_that_of_the_level(estimator, side):
    log = random_log(7, 25, 4)
    ev = op.evaluate(log, discount=0.9, estimators=[estimator], baseline=0.5)
    found = ev[estimator].interval(0.9, "likelihood", side=side)
    x = reference.evaluate(episodes_of(log), estimator, 0.9, baseline=0.5).values
    c = [reference.cumulative_ratios(reference.exact_steps(rows))[-1] for rows in episodes_of(log)]
    n, centre = len(x), Fraction(found.assumptions["centre"])
    quantile = stats.t.ppf(0.95 if side == "two" else 0.9, n - 2)
    least = distance(x, c, centre)
    assert distance(x, c, centre + Fraction(1, 10**6)) > least
    assert distance(x, c, centre - Fraction(1, 10**6)) > least
    assert [found.low is None, found.high is None] == [side == "upper", side == "lower"]
    for end in (found.low, found.high):
        if end is not None:
            assert float(distance(x, c, Fraction(end)) - least) == pytest.approx(quantile**2 * n / (n - 2), rel=1e-9)
    assert found.kind == "asymptotic"


def test_six_sums_add_up_over_shards():
    rng = np.random.default_rng(0)
    c, x = rng.exponential(size=90), rng.normal(size=90) * 10.0 ** rng.uniform(-9, 9, 90)
    whole = SixSums.of(c, x)
    order = rng.permutation(90)
    parts = [SixSums.of(c[part], x[part]) for part in np.array_split(order, 7)]
    merged = parts[0]
    for part in parts[1:]:
        merged = part.merge(merged)
    assert merged == whole
    assert merged.centre() == whole.centre()


@pytest.mark.parametrize("side", ["two", "lower", "upper"])
def test_returns_that_go_with_the_weights_leave_no_error_and_no_interval(side):
    log = pl.DataFrame({"episode": range(6), "step": 0, "reward": 2.0, "ratio": [0.5, 1.5, 0.25, 3.0, 1.0, 0.125]})
    found = op.evaluate(log, estimators=["is"])["is"].interval(method="likelihood", side=side)
    assert (found.low, found.high) == (None, None)
    assert "follow from the weights alone" in found.reason


def test_what_has_no_weights_or_too_few_trajectories_is_refused(log):
    ev = op.evaluate(log)
    for estimator, why in (("mc", "has none"), ("reg", "has none"), ("wis", "ratio of sums"), ("wdr", "ratio of sums")):
        found = ev[estimator].interval(method="likelihood")
        assert (found.low, found.high) == (None, None)
        assert why in found.reason
    few = log.filter(log["episode"].is_in(log["episode"].unique(maintain_order=True)[:2].implode()))
    assert "at least 3" in op.evaluate(few)["is"].interval(method="likelihood").reason
    equal = log.with_columns(ratio=1.0).drop("behavior_prob", "target_prob")
    assert "equal" in op.evaluate(equal)["step-is"].interval(method="likelihood").reason


def test_weights_without_a_square_are_refused():
    log = pl.DataFrame({"episode": [0, 1, 2], "step": 0, "reward": 1.0, "ratio": [1e200, 0.5, 2.0]})
    found = op.evaluate(log, estimators=["step-is"])["step-is"].interval(method="likelihood")
    assert "too large" in found.reason
    small = log.with_columns(ratio=pl.Series([0.5, 1.0, 2.0]), reward=pl.Series([1e-170, 2e-170, 5e-170]))
    assert "too small" in op.evaluate(small, estimators=["step-is"])["step-is"].interval(method="likelihood").reason


@pytest.mark.parametrize("scale", [1.0, 1e-100, 1e-170, 1e-310])
def test_weights_that_cannot_have_the_mean_one_are_refused(scale):
    """A line through weights far below 1 says nothing of where they are 1."""
    ratio = pl.Series([0.25, 0.5, 0.75, 0.5]) * scale
    log = pl.DataFrame({"episode": range(4), "step": 0, "reward": [1.0, 2.0, 3.0, 4.0], "ratio": ratio})
    found = op.evaluate(log, estimators=["is"])["is"].interval(method="likelihood")
    assert (found.low, found.high) == (None, None)
    assert "mean 1" in found.reason
    assert math.isfinite(op.evaluate(log, estimators=["step-is"])["step-is"].interval(method="t").low)
