"""`is-truncated`: exact against rationals, the same bits under any cut, and all that other estimators have."""

import math
from fractions import Fraction
from functools import partial

import offpolicy as op
import polars as pl
import pytest
import reference
from cli import offpolicy
from logs import episodes_of, random_log
from offpolicy.testing import Walk

ID = "is-truncated"
evaluate = partial(op.evaluate, discount=0.9, estimators=[ID])


def by_definition(log, discount=0.9):
    """min(ρ_{1:H}, √n) G of each episode, with √n as a float."""
    episodes = [reference.exact_steps(episode) for episode in episodes_of(log)]
    most, gamma = Fraction(math.sqrt(len(episodes))), Fraction(discount)
    weights = [min(math.prod((step.rho for step in steps), start=Fraction(1)), most) for steps in episodes]
    returns = [sum(gamma**t * step.reward for t, step in enumerate(steps)) for steps in episodes]
    return [weight * value for weight, value in zip(weights, returns, strict=True)]


def far_log(seed=1, n=60):
    """Ratios of up to 5, so that some weights are beyond √n."""
    return random_log(seed, episodes=n).with_columns(target_prob=pl.col("target_prob").clip(0.5, 1.0))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_is_its_definition(seed):
    log = far_log(seed)
    values = by_definition(log)
    n, mean = len(values), sum(values) / len(values)
    error = reference.square_root(sum((value - mean) ** 2 for value in values) / (n * (n - 1)))
    ev = evaluate(log)
    assert ev[ID].value == pytest.approx(float(mean), rel=1e-12)
    assert ev[ID].std_error == pytest.approx(error, rel=1e-12)
    assert ev.values(ID)["value"].to_list() == pytest.approx([float(value) for value in values], rel=1e-12)


def test_some_weights_are_cut():
    log = far_log()
    ratios = log.group_by("episode").agg((pl.col("target_prob") / pl.col("behavior_prob")).product().alias("c"))
    assert (ratios["c"] > math.sqrt(ratios.height)).any()
    assert evaluate(log)[ID].value != op.evaluate(log, discount=0.9, estimators=["is"])["is"].value


def test_where_no_weight_is_large_it_is_importance_sampling():
    log = random_log(4, episodes=50).with_columns(target_prob=pl.col("behavior_prob"))
    ev = op.evaluate(log, discount=0.9, estimators=["is", ID])
    assert (ev[ID].value, ev[ID].std_error) == (ev["is"].value, ev["is"].std_error)


def test_any_cut_gives_the_same_bits(tmp_path):
    log = far_log(5)
    whole = evaluate(log, threads=1, paired=True)
    for number, part in enumerate(log.iter_slices(37)):
        part.write_parquet(tmp_path / f"{number:02}.parquet")
    for other in (evaluate(log, threads=2, paired=True), evaluate(str(tmp_path / "*.parquet"), paired=True)):
        assert other.table.equals(whole.table)
        ours, theirs = (ev.difference("target", estimator=ID) for ev in (other, whole))
        assert (ours.value, ours.std_error) == (theirs.value, theirs.std_error)


def test_it_is_computed_where_it_is_named():
    assert ID not in op.evaluate(op.demo_log(), discount=0.9).table["estimator"].to_list()


def test_intervals_that_promise_the_value_are_withheld():
    estimate = evaluate(op.demo_log(), horizon=10)[ID]
    bounds = op.Bounds(reward=(0, 1), ratio=2.0)
    assert estimate.interval(method="t").low < estimate.value < estimate.interval(method="bootstrap").high
    assert "in the limit of many episodes only" in estimate.interval(method="betting", bounds=bounds).reason


def test_one_reading_is_too_few():
    with pytest.raises(op.UsageError, match=f"'{ID}' has no value after one reading: the values that it is made of"):
        evaluate(op.demo_log(), passes=1)


def test_it_has_a_verdict():
    ev = evaluate(op.demo_log())
    assert ev.verdict_on(ev[ID]).level in ("reliable", "fragile", "unusable")
    assert ev.leverage.row(0, named=True)["concentration"] is not None


def test_it_can_be_cross_fitted():
    walk = Walk()
    log = walk.simulate(walk.behavior, n=300, seed=1)
    found = op.cross_fit(log, walk, policy=walk.policies["eager"], estimators=[ID, "dr"])
    assert found[ID].std_error > 0


def test_a_policy_can_be_improved_by_it_where_no_reward_is_negative():
    walk = Walk(reward_range=(0.0, 1.0))
    log = walk.simulate(walk.behavior, n=300, seed=1).with_columns(pl.col("reward").clip(0.0))
    best = op.improve(log, walk, generator=walk.policies, estimator=ID)
    assert best.settings["estimator"] == ID


def test_costs_that_look_smaller_are_refused():
    walk = Walk()
    log = walk.simulate(walk.behavior, n=100, seed=1)
    with pytest.raises(op.UsageError, match="which makes costs look smaller"):
        op.improve(log, walk, generator=walk.policies, estimator=ID)


def test_the_command_line_knows_it(tmp_path):
    op.demo_log().write_parquet(tmp_path / "log.parquet")
    run = offpolicy("evaluate", str(tmp_path / "log.parquet"), "--discount", "0.9", "--estimator", ID, "--json")
    (estimate,) = run.document["estimates"]
    assert estimate["value"] == evaluate(op.demo_log())[ID].value
