"""Widths of betting: what a bound on ratios gives, beside `bernstein`, and beside one stake for each of five rounds."""

import math

import former_betting
import numpy as np
import offpolicy as op
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from offpolicy.intervals import betting
from offpolicy.intervals.sketch import Sketch, rounds_of

SIDES = ("lower", "upper")
DRAWS = {
    "coin": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "one in ten": lambda rng, n: (rng.random(n) < 0.1).astype(float),
    "beta": lambda rng, n: rng.beta(2, 5, n),
    "lognormal": lambda rng, n: np.exp(rng.normal(size=n)),
    "revenue": lambda rng, n: (rng.random(n) < 0.05) * np.exp(1.2 * rng.normal(size=n)),
}


def bandit(n, rng, chance):
    """One step; π0 takes either of two actions half of the time, π1 the first in three of four."""
    ratio = rng.permutation(np.resize([0.5, 1.5], n))
    reward = (rng.random(n) < chance).astype(float)
    return pl.DataFrame({"episode": np.arange(n), "step": 0, "reward": reward, "ratio": ratio})


def interval(log, method, level=0.95, reward=(0.0, 1.0), ratio=1.5, **options):
    bounds = op.Bounds(reward=reward, ratio=ratio)
    estimate = op.evaluate(log, horizon=1, estimators=["step-is"], bounds=bounds)["step-is"]
    return estimate.interval(level, method, **options)


@pytest.mark.parametrize(("rewarded", "most"), [(0, 0.0075), (1, 0.0105), (2, 0.013)])
def test_the_upper_end_of_rare_rewards_uses_a_bound_on_ratios(rewarded, most):
    """Without it the noise of weights alone makes it 0.03 and more."""
    log = bandit(1000, np.random.default_rng(0), 0.0)
    log = log.with_columns(reward=pl.col("episode").is_in([77, 577][:rewarded]).cast(pl.Float64))
    found = interval(log, "betting")
    assert log["reward"].sum() == rewarded
    assert found.low <= 0.001 * rewarded <= found.high <= most
    assert interval(log, "betting", ratio=None).high > 0.03
    assert interval(log, "sequence").high < 0.6 * interval(log, "sequence", ratio=None).high


def test_revenue_has_an_upper_end_of_its_own_size():
    """One in twenty orders for 1 to 1000; a bound on rewards alone leaves nothing but the noise of weights."""
    rng = np.random.default_rng(5)
    log = bandit(4000, rng, 0.05).with_columns(
        pl.col("reward") * np.minimum(1000.0, 100 * np.exp(rng.normal(size=4000)))
    )
    value = float((log["ratio"] * log["reward"]).mean())
    found, blind = (interval(log, "betting", reward=(0.0, 1000.0), ratio=ratio) for ratio in (1.5, None))
    assert found.low < value < found.high < 2 * value
    assert blind.high > 3 * value


@st.composite
def laws(draw):
    """Rewards within bounds that may be wider than they are, and weights within theirs."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, most = draw(st.integers(200, 1500)), draw(st.sampled_from([1.1, 1.5, 4.0]))
    chance = 10 ** draw(st.floats(-3, 0))
    heavy = rng.random(n) < chance
    ratio = np.where(rng.random(n) < 1 / most, most, 10 ** draw(st.floats(-3, 0)) * rng.random(n))
    reward = np.where(heavy, rng.beta(*10 ** rng.uniform(-1, 1, 2), n), draw(st.sampled_from([0.0, 0.5, 1.0])))
    shift = draw(st.sampled_from([0.0, -1.0, -0.4]))
    log = pl.DataFrame({"episode": np.arange(n), "step": 0, "reward": reward + shift, "ratio": ratio})
    return log, op.Bounds(reward=(shift - draw(st.sampled_from([0.0, 0.5])), 1 + shift), ratio=most)


@settings(derandomize=True)
@given(laws(), st.floats(1e-5, 0.1))
def test_betting_is_no_wider_than_bernstein_on_these_samples_of_200_trajectories_and_more(law, delta):
    """The samples are the same each time, since rare exceptions are known: the docstring of `betting` has two."""
    log, bounds = law
    estimate = op.evaluate(log, horizon=1, estimators=["step-is"], bounds=bounds)["step-is"]
    least, most = bounds.range("step-is", estimate.terms)
    low, high = (estimate.interval(1 - delta, "bernstein", side=side) for side in SIDES)
    assert estimate.interval(1 - delta, "betting", side="lower").low >= max(low.low, least) - 1e-9
    assert estimate.interval(1 - delta, "betting", side="upper").high <= min(high.high, most) + 1e-9


def test_stakes_by_what_is_missing_are_narrower_than_one_stake_for_each_of_five_rounds():
    """Of 95% intervals: for each law, and by a fifth on average from n = 1000 on."""
    for n, least in ((100, 0.1), (1000, 0.2)):
        shares = []
        for law in DRAWS.values():
            samples = [law(np.random.default_rng([seed, n]), n) for seed in range(12)]
            now = np.mean([x.mean() - betting.lower(Sketch.of(range(n), x, 0.0), 0.025) for x in samples])
            shares.append(now / np.mean([x.mean() - former_betting.lower(x, 0.025) for x in samples]))
        assert max(shares) < 1
        assert np.mean(shares) < 1 - least


def test_no_bound_is_beyond_the_mean_of_the_sample_whatever_luck_the_first_rounds_had():
    """By all rewards in the first half of the rounds the gamblers of every small m have won before the others come."""
    n = 10_000
    early = rounds_of(range(n)) < 20
    x = (early & (np.arange(n) % 500 == 0)).astype(float)
    assert 0 < x.sum() < 20
    for delta in (0.05, 0.3):
        assert 0 <= betting.lower(Sketch.of(range(n), x, 0.0), delta) <= x.mean()
        assert 0 <= betting.lower(Sketch.of(range(n), 1 - x, 0.0), delta) <= 1 - x.mean()


def test_the_bound_is_that_of_the_sketch_whatever_the_order_and_the_cut():
    n, rng = 3000, np.random.default_rng(8)
    x = np.exp(rng.normal(size=n))
    whole = Sketch.of(range(n), x, 0.0)
    order = rng.permutation(n)
    parts = [Sketch.of(order[k::3].tolist(), x[order[k::3]], 0.0) for k in range(3)]
    assert betting.lower(parts[2].merge(parts[0]).merge(parts[1]), 0.05) == betting.lower(whole, 0.05)


def test_a_bound_on_ratios_that_is_beyond_floats_is_as_good_as_none():
    log = bandit(200, np.random.default_rng(1), 0.3)
    bounds = [op.Bounds(reward=(0.0, 1.0), ratio=ratio) for ratio in (None, 1e200)]
    none, huge = (
        op.evaluate(log, horizon=2, estimators=["step-is"], bounds=each)["step-is"].interval(method="betting")
        for each in bounds
    )
    assert (none.low, none.high) == (huge.low, huge.high)
    assert math.isfinite(none.high)
