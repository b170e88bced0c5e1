"""MAGIC: the blend against an exact reference and at its edges; the experiment of its paper."""

import math
from fractions import Fraction

import numpy as np
import offpolicy as op
import polars as pl
import published_magic
import pytest
import reference
import reference_magic
import thomas_brunskill
from cli import offpolicy
from logs import episodes_of, one_step_log, random_log, skeleton
from offpolicy.intervals import METHODS
from offpolicy.testing import Walk

GAMMA = 0.9


def near(expected, rel=1e-12):
    return pytest.approx(float(expected), rel=rel, abs=0.0)


def evaluate(log, *estimators, **settings):
    return op.evaluate(log, discount=GAMMA, estimators=list(estimators) or ["magic"], **settings)


def exact(log, gamma=GAMMA):
    steps = [reference.exact_steps(episode) for episode in episodes_of(log)]
    return reference_magic.blend(reference.absorbed(steps, max(map(len, steps))), Fraction(gamma))


def dyadic_log(seed, episodes, horizon):
    """Numbers of few bits, so that exact sums over many steps stay short."""
    rng = np.random.default_rng(seed)
    lengths = np.maximum(1, horizon - rng.integers(0, horizon, episodes) * rng.integers(0, 2, episodes))
    lengths[0] = horizon
    log = skeleton(lengths)
    n = log.height

    def eighths(low, high):
        return rng.integers(low, high, n) / 8

    return log.with_columns(reward=eighths(-8, 16), ratio=eighths(5, 12), q_hat=eighths(-8, 16), v_hat=eighths(-8, 16))


@pytest.mark.parametrize("seed", [1, 2, 4, 5, 6, 7])
def test_the_shares_are_those_of_the_reference(seed):
    log = random_log(seed, episodes=9, horizon=4).with_columns(pl.col("q_hat", "v_hat") + 2.0)
    estimate, expected = evaluate(log)["magic"], exact(log)
    assert estimate.blend == {j: pytest.approx(float(x), abs=1e-12) for j, x in enumerate(expected.shares)}
    assert estimate.value == near(expected.value)
    assert estimate.std_error == near(reference.square_root(expected.std_error_squared))
    assert min(expected.returns) <= estimate.value <= max(expected.returns)
    assert 0 < max(expected.shares) < 1


@pytest.mark.parametrize("horizon", [1, 7, 8, 31, 32, 33, 45])
def test_no_other_shares_have_a_smaller_error_in_exact_arithmetic(horizon):
    """With M = Ω + b bᵀ, no point of the simplex is better than x by more than 2 (xᵀMx - min_j (Mx)_j)."""
    log = dyadic_log(horizon, episodes=12, horizon=horizon)
    steps = [reference.exact_steps(episode) for episode in episodes_of(log)]
    estimate = evaluate(log)["magic"]
    lengths = reference_magic.lengths(horizon)
    assert list(estimate.blend) == lengths
    assert len(lengths) == min(horizon + 1, 32)
    shares = [Fraction(share) for share in estimate.blend.values()]
    found = without_search(reference.absorbed(steps, horizon), Fraction(GAMMA), shares)
    assert min(shares) >= 0
    assert sum(shares) == near(1)
    products = [sum(m * x for m, x in zip(row, shares, strict=True)) for row in found.matrix]
    square = reference_magic.quadratic(found.matrix, shares)
    assert square - min(products) <= Fraction(1, 10**11) * square
    assert estimate.value == near(sum(x * g for x, g in zip(shares, found.returns, strict=True)) / sum(shares))
    assert estimate.std_error == near(reference.square_root(found.std_error_squared))


def without_search(log, gamma, shares):
    """The reference's blend, with given shares."""
    search = reference_magic.least
    try:
        reference_magic.least = lambda matrix: shares
        return reference_magic.blend(log, gamma)
    finally:
        reference_magic.least = search


def test_a_longer_log_of_ended_episodes_is_the_same():
    log = random_log(3, episodes=20, horizon=40)
    longer = evaluate(log, horizon=400)["magic"]
    assert longer.blend == evaluate(log)["magic"].blend
    assert longer.value == evaluate(log)["magic"].value


@pytest.mark.parametrize("power", [600, -600])
def test_rewards_far_from_one_are_blended_alike(power):
    log = random_log(4, episodes=30, horizon=6)
    far = log.with_columns(pl.col("reward", "q_hat", "v_hat") * 2.0**power)
    near_one, far_off = evaluate(log)["magic"], evaluate(far)["magic"]
    assert far_off.blend == near_one.blend
    assert far_off.value == math.ldexp(near_one.value, power)
    assert far_off.std_error == math.ldexp(near_one.std_error, power)


def test_without_a_model_it_blends_parts_of_step_wis():
    ev = evaluate(random_log(5).with_columns(q_hat=0.0, v_hat=0.0), "magic", "wdr", "step-wis")
    assert ev["wdr"].value == ev["step-wis"].value
    low, high = sorted([0.0, ev["step-wis"].value])
    assert low <= ev["magic"].value <= high


def test_a_wildly_wrong_model_is_left_aside():
    log = random_log(6, 200, 5, ragged=False).with_columns(pl.col("q_hat", "v_hat") + 1e6)
    ev = evaluate(log, "magic", "wdr")
    assert ev["magic"].value == pytest.approx(ev["wdr"].value, abs=1e-3 * ev["wdr"].std_error)
    assert ev["magic"].std_error == pytest.approx(ev["wdr"].std_error, rel=1e-3)
    assert ev["magic"].blend[5] > 0.999


def test_the_published_form_blends_the_same_returns():
    domain = thomas_brunskill.MODEL_WIN
    (log,) = thomas_brunskill.logs(domain, [200], seed=3)
    g = published_magic.Returns(log, domain.horizon).shares().sum(axis=0)
    reg, wdr, _ = thomas_brunskill.estimates(domain, log)
    assert g[[0, -1]] == pytest.approx([reg.value, wdr.value], rel=1e-12)
    assert min(g) <= published_magic.value(log, domain.horizon, np.random.default_rng(0)) <= max(g)


def test_a_right_model_takes_all():
    walk = Walk()
    target = walk.policies["eager"]
    q, v = walk.exact_values(target)
    log = op.annotate(walk.simulate(walk.behavior, n=500, seed=2), target, columns=op.Columns(state=("place",)))
    step, place, action = (log[name].to_numpy() for name in ("step", "place", "action"))
    log = log.with_columns(q_hat=q[step, place, action], v_hat=v[step, place])
    ev = op.evaluate(log, discount=walk.discount, horizon=walk.horizon, estimators=["magic", "reg", "wdr"])
    assert abs(ev["wdr"].value - ev["reg"].value) < 1.6 * ev["wdr"].std_error
    assert ev["magic"].value == ev["reg"].value
    assert ev["magic"].blend == {steps: float(steps == 0) for steps in range(walk.horizon + 1)}
    assert ev["magic"].std_error == 0


def test_a_single_trajectory_tells_no_variance_from_a_bias():
    estimate = evaluate(random_log(7, episodes=1, horizon=4))["magic"]
    assert estimate.value == evaluate(random_log(7, episodes=1, horizon=4), "wdr")["wdr"].value
    assert estimate.blend == {0: 0.0, 1: 0.0, 2: 0.0, 3: 0.0, 4: 1.0}
    assert estimate.std_error is None


def test_trajectories_that_are_all_alike_leave_wdr():
    one = random_log(8, episodes=1, horizon=4)
    log = pl.concat([one.with_columns(episode=pl.lit(i, pl.Int64)) for i in range(5)])
    ev = evaluate(log, "magic", "wdr")
    assert ev["magic"].value == ev["wdr"].value
    assert ev["magic"].std_error == pytest.approx(0, abs=1e-15)


def test_a_constant_reward_is_known_for_certain():
    log = random_log(9, ragged=False).with_columns(reward=2.0, q_hat=0.0, v_hat=0.0)
    ev = evaluate(log, "magic", "step-wis")
    assert ev["magic"].value == near(ev["step-wis"].value, rel=1e-14)
    assert ev["magic"].std_error == pytest.approx(0, abs=1e-14)


def test_one_step_is_a_blend_of_two():
    rng = np.random.default_rng(10)
    log = one_step_log(rng.normal(size=8), ratio=pl.Series(rng.uniform(0.2, 3, 8)))
    log = log.with_columns(q_hat=pl.Series(rng.normal(size=8)), v_hat=pl.Series(rng.normal(size=8)))
    ev, expected = evaluate(log, "magic", "reg", "wdr"), exact(log)
    share = ev["magic"].blend[0]
    assert 0 < share < 1
    assert share == near(expected.shares[0])
    assert ev["magic"].value == near(share * ev["reg"].value + (1 - share) * ev["wdr"].value)


@pytest.mark.parametrize("size", [1e-280, 1e-200, 1e200, 1e280])
def test_a_trajectory_of_another_magnitude_changes_no_bit_of_the_others_part(tmp_path, size):
    """Read beside others a trajectory is computed with wide floats, in a file of its own with plain ones."""
    log = random_log(12, episodes=6, horizon=20)
    wild = pl.col("episode") == log["episode"][0]
    log = log.with_columns(pl.when(wild).then(pl.col(c) * size).otherwise(c) for c in ("reward", "q_hat", "v_hat"))
    paths = [tmp_path / f"{i}.parquet" for i in range(6)]
    for path, part in zip(paths, log.partition_by("episode"), strict=True):
        part.write_parquet(path)
    whole = evaluate(log)["magic"]
    for order in (paths, paths[::-1]):
        apart = evaluate(order)["magic"]
        assert (apart.value, apart.std_error, apart.blend) == (whole.value, whole.std_error, whole.blend)


def test_weights_beyond_the_range_of_floats(tmp_path):
    """Ratios of 4 and 1/4 for 3000 steps, in pieces: cumulative ones reach 2^±6000."""
    rng = np.random.default_rng(11)
    log = skeleton([3000, 3000, 2000, 3000, 1]).with_columns(pl.lit(0.5).alias("reward"))
    n = log.height
    ratio = np.where(log["episode"].to_numpy() % 2 == 0, 4.0, 0.25) * rng.choice([0.5, 2.0], n)
    log = log.with_columns(
        ratio=pl.Series(ratio), q_hat=pl.Series(rng.normal(size=n)), v_hat=pl.Series(rng.normal(size=n))
    )
    whole = evaluate(log, "magic", "wdr")
    paths = [tmp_path / f"{start}.parquet" for start in range(0, n, 997)]
    for start, path in zip(range(0, n, 997), paths, strict=True):
        log[start : start + 997].write_parquet(path)
    assert evaluate(paths[::-1], "magic", "wdr").table.equals(whole.table)
    assert math.isfinite(whole["magic"].value)
    assert len(whole["magic"].blend) == 32


def test_one_reading_is_not_enough(log):
    with pytest.raises(op.UsageError, match=r"'magic' has no value after one reading.*passes=2"):
        op.evaluate(log, estimators=["magic"], passes=1)
    ev = op.evaluate(log, passes=1)
    assert "magic" not in ev.table["estimator"].to_list()
    assert "wdr" in ev.table["estimator"].to_list()
    assert any(note.startswith("magic was left out") for note in ev.notes)
    without_model = op.evaluate(log.drop("q_hat"), passes=1)
    assert not any("magic" in note for note in without_model.notes)


def test_one_reading_on_the_command_line(log_file):
    run = offpolicy("evaluate", log_file, "--one-pass", "--estimator", "magic")
    assert run.code == 2
    assert "--one-pass" in run.err
    assert "passes" not in run.err
    run = offpolicy("evaluate", log_file, "--one-pass")
    assert run.code == 0
    assert "magic was left out" in run.out


@pytest.mark.parametrize("method", METHODS)
def test_no_interval_covers_the_bias_of_its_model(log, method):
    ev = op.evaluate(log, estimators=["magic", "wdr"])
    found = ev["magic"].interval(method=method)
    assert (found.low, found.high) == (None, None)
    assert "bias of the model" in found.reason
    assert ev["magic"].std_error > 0
    assert ev["wdr"].low < ev["wdr"].high


def test_it_is_never_reliable():
    ev = op.evaluate(op.demo_log(), discount=0.9)
    assert ev.verdict_on(ev["wdr"]).level == "reliable"
    assert ev.verdict_on(ev["magic"]).level == "fragile"
    assert "leans on a model" in ev.verdict_on(ev["magic"]).rule


def test_it_has_no_values_of_single_trajectories(log):
    with pytest.raises(op.UsageError, match="no values of single trajectories"):
        op.evaluate(log, estimators=["magic"]).values("magic")


def test_cross_fitting_and_comparing_know_it():
    walk = Walk()
    log = walk.simulate(walk.behavior, n=200, seed=1)
    found = op.cross_fit(log, policy=walk.policies["eager"], domain=walk, estimators=["magic", "wdr"])
    assert found["magic"].blend.keys() == set(range(walk.horizon + 1))
    assert found.folds.filter(estimator="magic")["value"].null_count() == 0
    table = op.compare(walk, walk.policies, estimators=["magic", "wdr"], sizes=[50], runs=5, workers=1).table
    assert set(table["estimator"]) == {"magic", "wdr"}


def test_the_shares_are_in_the_document(log):
    ev = op.evaluate(log, estimators=["magic", "wdr"])
    magic, wdr = ev.to_dict()["estimates"]
    assert magic["blend"] == {str(steps): share for steps, share in ev["magic"].blend.items()}
    assert "blend" not in wdr


@pytest.fixture(scope="module")
def errors():
    """Mean squared errors by domain, (sizes, estimators)."""
    sizes = [128, 512, 2048]
    return {
        domain.name: thomas_brunskill.squared_errors(domain, sizes, runs=128).mean(axis=0)
        for domain in thomas_brunskill.DOMAINS
    }


@pytest.mark.slow
def test_near_wdr_where_the_model_fails(errors):
    reg, wdr, magic = errors["ModelFail"].T
    assert (reg > 10 * wdr).all()
    assert (magic < 2.5 * wdr).all()
    assert magic[-1] < 1.2 * wdr[-1]


@pytest.mark.slow
def test_between_the_model_and_wdr_where_the_model_wins(errors):
    reg, wdr, magic = errors["ModelWin"].T
    assert (wdr > 5 * reg).all()
    assert (magic < wdr / 3).all()


@pytest.mark.slow
def test_better_than_both_where_each_knows_a_part(errors):
    reg, wdr, magic = errors["Hybrid"].T
    assert (magic < 1.1 * np.minimum(reg, wdr)).all()
    assert (magic[1:] < 0.8 * np.minimum(reg, wdr)[1:]).all()
