"""The bootstrap against the reference on logs in which trajectories really are repeated; its law, bits and refusals."""

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import offpolicy as op
import polars as pl
import pytest
import reference
from logs import episodes_of, one_step_log, random_log, skeleton
from offpolicy.folds import hash_of
from offpolicy.intervals import bootstrap, poisson
from offpolicy.intervals.ratios import Ratios
from offpolicy.intervals.replicates import Quanta, ReplicateSums
from scipy import stats

GAMMA = 0.9
WORD = (1 << 64) - 1
PHI = NormalDist()


def split_mix(state, count):
    """The first outputs of SplitMix64, in Python's integers."""
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & WORD
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
        yield z ^ (z >> 31)


def drawn(episode, replicates, seed=0):
    """N of one trajectory in each resample."""
    bits = [
        (word >> shift) & 0xFFFF
        for word in split_mix(int(hash_of([episode], seed)[0]), replicates // 4)
        for shift in (0, 16, 32, 48)
    ]
    return [sum(u < threshold for threshold in poisson.THRESHOLDS) for u in bits]


def requested(estimate, **options):
    return estimate._request("bootstrap", 0.9, None, "two", **options)


@pytest.mark.parametrize("estimator", reference.UNIQUE)
@pytest.mark.parametrize("horizon", [None, 7])
def test_replicates_are_the_estimates_of_logs_with_repeated_trajectories(estimator, horizon):
    log = random_log(9, 9, 4)
    ev = op.evaluate(log, discount=GAMMA, estimators=[estimator], baseline=0.5, horizon=horizon)
    found = bootstrap.bootstrap(requested(ev[estimator], replicates=40))
    episodes = episodes_of(log)
    counts = [drawn(rows[0]["episode"], 40) for rows in episodes]
    for b in range(40):
        resample = [rows for rows, count in zip(episodes, counts, strict=True) for _ in range(count[b])]
        expected = reference.evaluate(resample, estimator, GAMMA, horizon=horizon or 4, baseline=0.5).value
        assert found.replicates[b] == pytest.approx(float(expected), rel=1e-11, abs=1e-11)
    assert found.theta == pytest.approx(ev[estimator].value, rel=1e-11)


def test_trajectories_that_earn_nothing_are_resampled_too():
    rewards = [0.0, 0.0, 0.0, 2.0, 4.0]
    found = bootstrap.bootstrap(requested(op.evaluate(one_step_log(rewards))["mc"], replicates=40)).replicates
    counts = np.array([drawn(episode, 40) for episode in range(5)])
    assert (counts.sum(axis=0) > counts[3:].sum(axis=0)).any()
    assert found == pytest.approx(rewards @ counts / counts.sum(axis=0), rel=1e-11, nan_ok=True)


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e300])
def test_the_smallest_and_the_largest_numbers_are_resampled(size):
    """Units of a column below the range of normal floats would be 0."""
    estimate = op.evaluate(one_step_log([size, 0.0, 3 * size, size, 0.0, size]))["mc"]
    found = bootstrap.bootstrap(requested(estimate, replicates=40))
    assert found.theta == pytest.approx(estimate.value, rel=1e-12)
    assert size < np.nanmax(found.replicates) <= 3 * size
    assert estimate.interval(0.5, "bootstrap").low >= 0


def test_weights_have_mean_and_variance_one_and_are_nearly_poisson():
    t = [Fraction(x, 1 << 16) for x in poisson.THRESHOLDS]
    assert sum(t) == 1
    assert sum((2 * k - 1) * x for k, x in enumerate(t, start=1)) == 2
    exact = stats.poisson.sf(np.arange(8), 1) * 65536
    assert np.abs(np.array(poisson.THRESHOLDS) - exact).max() < 0.7
    drawn = poisson.weights(hash_of(range(4000)), range(100))
    assert abs(drawn.mean() - 1) < 5 / math.sqrt(drawn.size)
    assert np.abs(np.corrcoef(drawn[:, :40].T) - np.eye(40)).max() < 5 / math.sqrt(4000)
    assert np.abs(np.corrcoef(drawn[:40]) - np.eye(40)).max() < 5.5 / math.sqrt(400)


@pytest.mark.parametrize("estimator", ["mc", "step-is", "wis", "step-wis", "dr", "wdr"])
def test_the_spread_of_replicates_is_the_standard_error(estimator):
    ev = op.evaluate(op.demo_log(episodes=1500), discount=GAMMA, estimators=[estimator])
    found = bootstrap.bootstrap(requested(ev[estimator], replicates=1000))
    assert found.replicates.std() == pytest.approx(ev[estimator].std_error, rel=0.1)


def test_a_constant_reward_has_no_error_only_if_the_normalisers_are_those_of_the_resample():
    log = random_log(2, 30, 4, ragged=False).with_columns(reward=3.0)
    truth = 3.0 * sum(0.5**t for t in range(4))
    ev = op.evaluate(log, discount=0.5, estimators=["mc", "wis", "step-wis"])
    for estimator in ("mc", "wis", "step-wis"):
        found = bootstrap.bootstrap(requested(ev[estimator], replicates=200))
        assert found.replicates == pytest.approx(truth, rel=1e-8)


@pytest.mark.parametrize(("side", "tail"), [("two", 0.05), ("lower", 0.1), ("upper", 0.1)])
def test_percentiles_are_order_statistics(log, side, tail):
    estimate = op.evaluate(log, discount=GAMMA)["step-wis"]
    found = estimate.interval(0.9, "bootstrap", side=side, replicates=499, seed=3)
    ordered = sorted(bootstrap.bootstrap(requested(estimate, replicates=499, seed=3)).replicates)
    place = int(500 * tail + 1e-9)
    assert found.low == (None if side == "upper" else ordered[place - 1])
    assert found.high == (None if side == "lower" else ordered[499 - place])
    assert (found.kind, found.assumptions) == ("heuristic", {"replicates": 499, "seed": 3, "undefined": 0})


@pytest.mark.parametrize("estimator", ["step-is", "wis", "step-wis", "wdr"])
@pytest.mark.parametrize("side", ["two", "lower"])
def test_bca_by_its_formula(estimator, side):
    log = random_log(4, 25, 4)
    estimate = op.evaluate(log, discount=GAMMA, estimators=[estimator])[estimator]
    replicates = sorted(bootstrap.bootstrap(requested(estimate, replicates=999)).replicates)
    if estimator in reference.SELF_NORMALISED:
        rectangle = reference.absorbed([reference.exact_steps(rows) for rows in episodes_of(log)], 4)
        psi = [float(x) for x in reference.influence(rectangle, estimator, Fraction(GAMMA))]
    else:
        exact = reference.evaluate(episodes_of(log), estimator, GAMMA)
        psi = [float(x - exact.value) for x in exact.values]
    a = math.fsum(x**3 for x in psi) / (6 * math.fsum(x**2 for x in psi) ** 1.5)
    z_0 = PHI.inv_cdf(sum(x < estimate.value for x in replicates) / 999)

    def place(level):
        z = z_0 + PHI.inv_cdf(level)
        return 1000 * PHI.cdf(z_0 + z / (1 - a * z))

    found = estimate.interval(0.9, "bootstrap-bca", side=side, replicates=999)
    assert found.assumptions["acceleration"] == pytest.approx(a, rel=1e-6)
    assert found.assumptions["bias"] == pytest.approx(z_0, rel=1e-9)
    assert found.low == replicates[math.floor(place(0.05 if side == "two" else 0.1)) - 1]
    if side == "two":
        assert found.high == replicates[999 - math.floor(1000 - place(0.95))]


def test_resamples_without_weight_count_as_infinite():
    log = one_step_log([1.0, 2.0] + [1.0] * 10, ratio=pl.Series([6.0, 6.0] + [0.0] * 10))
    ev = op.evaluate(log, estimators=["wis", "step-wis", "step-is"])
    for estimator in ("wis", "step-wis"):
        found = ev[estimator].interval(0.9, "bootstrap")
        assert "without weight, do not reach" in found.reason
        wide = ev[estimator].interval(0.5, "bootstrap")
        assert wide.assumptions["undefined"] / 2000 == pytest.approx(math.exp(-2), abs=0.04)
        assert (wide.low, wide.high) == (1.0, 2.0)
    assert ev["step-is"].interval(0.9, "bootstrap").low == 0.0


def test_one_trajectory_shows_nothing():
    found = op.evaluate(one_step_log([1.0]), estimators=["step-is"])["step-is"].interval(0.9, "bootstrap")
    assert (found.low, found.high) == (None, None)


def test_too_few_replicates_for_the_level_are_refused(log):
    estimate = op.evaluate(log)["step-is"]
    assert "do not reach" in estimate.interval(0.99, "bootstrap", replicates=100).reason
    for wrong in (0, -1, 2.5):
        with pytest.raises(op.UsageError, match="replicates must be"):
            estimate.interval(method="bootstrap", replicates=wrong)


def test_too_large_a_state_is_refused(log):
    estimate = op.evaluate(log, horizon=100_000, estimators=["step-wis"])["step-wis"]
    assert "ask for fewer replicates" in estimate.interval(method="bootstrap").reason


def test_small_weights_have_the_acceleration_of_large_ones():
    rng = np.random.default_rng(3)
    log = one_step_log(rng.normal(size=30), ratio=pl.Series(rng.exponential(size=30)))
    found = []
    for power in (0, -560):
        ev = op.evaluate(log.with_columns(pl.col("ratio") * 2.0**power), estimators=["wis"])
        found.append(ev["wis"].interval(0.9, "bootstrap-bca"))
    one, small = found
    assert one.assumptions["acceleration"] == pytest.approx(small.assumptions["acceleration"], rel=1e-12)
    assert one.assumptions["acceleration"] != 0
    assert (one.low, one.high) == (small.low, small.high)


def test_a_bound_from_one_side_corrects_that_side_alone(log):
    """Which may be possible where the other is not."""
    estimate = op.evaluate(log, estimators=["step-is"])["step-is"]
    estimate.samples.kept.clear()
    known = bootstrap.Bootstrap(estimate.value, estimate.value + np.linspace(-1, 1, 401), acceleration=0.7)
    estimate.samples.kept[("bootstrap", "target", "step-is", 401, 0)] = known
    two, lower = (estimate.interval(0.95, "bootstrap-bca", side=side, replicates=401) for side in ("two", "lower"))
    assert "acceleration" in two.reason
    assert lower.low is not None


def test_weights_beyond_f64_are_refused():
    log = skeleton([2, 2]).with_columns(reward=pl.Series([1.0, 1.0, 2.0, 3.0]), ratio=1e300)
    found = op.evaluate(log, estimators=["wis"])["wis"].interval(method="bootstrap")
    assert "beyond the range of f64" in found.reason


def test_another_seed_gives_other_resamples_and_the_same_one_the_same(log):
    estimate = op.evaluate(log)["step-wis"]
    first, again, other = (estimate.interval(0.9, "bootstrap", seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.low != other.low


def test_sums_of_shards_add_up_to_the_bits_of_the_whole():
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(900, 3)) * 10.0 ** rng.uniform(-6, 6, (900, 3))
    ids = pl.Series(rng.permutation(900))
    quanta = Quanta.of([(ids, columns)], 900)
    whole = ReplicateSums(50, 7, quanta)
    whole.add((ids, columns))
    merged = ReplicateSums(50, 7, quanta)
    for part in np.array_split(rng.permutation(900), 5):
        shard = ReplicateSums(50, 7, quanta)
        shard.add((ids[part], columns[part]))
        merged.merge(shard)
    assert (merged.sums == whole.sums).all()
    assert (merged.log == whole.log).all()
    assert (whole.sums == np.rint(whole.sums)).all()
    with pytest.raises(op.UsageError, match="same resamples"):
        merged.merge(ReplicateSums(50, 8, quanta))


def test_rounding_to_units_is_far_below_the_error():
    x = np.random.default_rng(1).exponential(size=(5000, 1))
    ids = pl.Series(range(5000))
    sums = ReplicateSums(200, 0, Quanta.of([(ids, x)], 5000))
    sums.add((ids, x))
    weights = poisson.weights(hash_of(ids), range(50))
    plain = (weights.T @ x)[:, 0] / weights.sum(axis=0)
    _, found = sums.estimates(Ratios(np.ones(1), np.array([1]), np.array([0])))
    assert np.abs(found - plain).max() < 1e-9
