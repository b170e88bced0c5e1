"""Properties that hold for every log (STATISTICS 6.4), on logs that hypothesis makes up."""

import tempfile
from pathlib import Path

import offpolicy as op
import polars as pl
import pytest
import reference
from hypothesis import assume, given
from hypothesis import strategies as st
from logs import bits, episodes_of, file_pieces, skeleton, value_bits

IMPORTANCE = ["is", "step-is", "wis", "step-wis"]
MODEL = ["reg", "dr", "dr-v2", "wdr", "magic"]
#: The blend of `magic` is not where few trajectories leave several without an error; `test_magic` has it where it is.
UNIQUE = [estimator for estimator in reference.ESTIMATORS if estimator != "magic"]
DISCOUNTS = st.sampled_from([0.0, 0.3, 0.9, 1.0])
NUMBERS = st.floats(-1e3, 1e3).map(lambda x: x if abs(x) > 1e-6 else 0.0)
PROBABILITIES = st.floats(0.01, 1.0)


def near(expected, scale=0.0):
    """1e-12 of the value, or of the terms that it is the sum of."""
    return pytest.approx(float(expected), rel=1e-12, abs=1e-13 * float(scale))


@st.composite
def logs(draw, min_episodes=2, max_episodes=6, max_length=5):
    lengths = draw(st.lists(st.integers(1, max_length), min_size=min_episodes, max_size=max_episodes))
    frame = skeleton(lengths, first_step=draw(st.integers(0, 1)))

    def column(values):
        return pl.Series(draw(st.lists(values, min_size=frame.height, max_size=frame.height)), dtype=pl.Float64)

    return frame.with_columns(
        reward=column(NUMBERS),
        behavior_prob=column(PROBABILITIES),
        target_prob=column(PROBABILITIES),
        q_hat=column(NUMBERS),
        v_hat=column(NUMBERS),
        r_hat=column(NUMBERS),
        transition_ratio=column(st.floats(0.25, 4.0)),
    )


def evaluate(log, discount=0.9, **more):
    return op.evaluate(log, discount=discount, baseline=0.5, **more)


def terms(log, estimator, discount):
    """The estimate if nothing in it cancelled: what its rounding is measured by."""
    if estimator == "dr-bsl":
        most = 0.5 * log["step"].max() + 0.5
        log, estimator = log.with_columns(q_hat=pl.lit(most), v_hat=pl.lit(most)), "dr"
    plus = [pl.col("reward", "v_hat").abs()]
    minus = [-pl.col("q_hat", "r_hat", "transition_ratio").abs()]
    return reference.evaluate(episodes_of(log.with_columns(plus + minus)), estimator, discount).value


@given(logs(min_episodes=1), DISCOUNTS)
def test_every_estimator_is_its_definition(log, discount):
    ev = evaluate(log, discount)
    episodes = episodes_of(log)
    for estimator in UNIQUE:
        expected = reference.evaluate(episodes, estimator, discount, baseline=0.5)
        assert ev[estimator].value == near(expected.value, terms(log, estimator, discount))


@given(logs(), st.randoms(use_true_random=False))
def test_a_permutation_of_the_episodes_changes_no_bit(log, rng):
    groups = log.partition_by("episode")
    rng.shuffle(groups)
    assert bits(evaluate(pl.concat(groups))) == bits(evaluate(log))


@given(logs(), st.data())
def test_any_cut_into_files_and_batches_changes_no_bit(log, data):
    cuts = data.draw(st.lists(st.integers(0, log.height), max_size=6))
    batch_rows = data.draw(st.integers(1, log.height))
    with tempfile.TemporaryDirectory() as folder:
        paths = file_pieces(log, Path(folder), cuts, row_group_size=data.draw(st.integers(1, 7)))
        paths = data.draw(st.permutations(paths))
        ev = evaluate(paths, batch_rows=batch_rows, threads=data.draw(st.integers(1, 3)))
        assert bits(ev) == bits(evaluate(log))
        assert value_bits(ev, "dr-v2") == value_bits(evaluate(log), "dr-v2")
        assert value_bits(ev, "wdr") == value_bits(evaluate(log), "wdr")
    assert bits(evaluate(log.lazy(), batch_rows=batch_rows)) == bits(evaluate(log))


@given(logs(), st.text(max_size=3))
def test_renamed_ids_change_no_bit(log, prefix):
    renamed = log.with_columns(episode=prefix + (100 - pl.col("episode")).cast(pl.String))
    assert bits(evaluate(renamed)) == bits(evaluate(log))


@given(logs(), st.sampled_from([2.0, -0.5, 1024.0]))
def test_a_power_of_two_scales_rewards_exactly(log, factor):
    scaled = log.with_columns(pl.col("reward", "q_hat", "v_hat", "r_hat") * factor)
    before = op.evaluate(log, discount=0.9)
    after = op.evaluate(scaled, discount=0.9)
    for estimator in ("mc", *IMPORTANCE, *MODEL):
        assert after[estimator].value == factor * before[estimator].value
        assert after[estimator].std_error == abs(factor) * before[estimator].std_error


@given(logs(), st.floats(0.1, 50.0))
def test_any_factor_scales_rewards(log, factor):
    scaled = log.with_columns(reward=pl.col("reward").abs() * factor)
    before = evaluate(log.with_columns(reward=pl.col("reward").abs()))
    after = evaluate(scaled)
    for estimator in ("mc", *IMPORTANCE):
        assert after[estimator].value == near(factor * before[estimator].value)


@given(logs(), DISCOUNTS)
def test_dr_without_a_model_is_step_is(log, discount):
    zero = log.with_columns(q_hat=0.0, v_hat=0.0, r_hat=0.0)
    ev = op.evaluate(zero, discount=discount, baseline=0.0)
    for estimator in ("dr", "dr-v2", "dr-bsl"):
        assert ev[estimator].value == ev["step-is"].value
        assert ev[estimator].std_error == ev["step-is"].std_error
    assert ev["wdr"].value == ev["step-wis"].value
    assert ev["reg"].value == 0.0


@given(logs(), DISCOUNTS)
def test_a_ratio_of_one_is_the_behaviour_policy(log, discount):
    ev = evaluate(log.with_columns(target_prob="behavior_prob"), discount)
    for estimator in IMPORTANCE:
        assert ev[estimator].value == near(ev["mc"].value)
        assert ev[estimator].ess == ev["mc"].ess == ev.episodes
    assert ev["step-is"].std_error == near(ev["mc"].std_error)
    assert ev["is"].std_error == near(ev["mc"].std_error)


@given(logs(max_length=1), DISCOUNTS)
def test_one_step_is_the_bandit_dr(log, discount):
    rho = log["target_prob"] / log["behavior_prob"]
    expected = log["v_hat"] + rho * (log["reward"] - log["q_hat"])
    values = evaluate(log, discount).values("dr")["value"].to_list()
    parts = log["v_hat"].abs() + rho * (log["reward"].abs() + log["q_hat"].abs())
    assert values == [near(x, scale) for x, scale in zip(expected, parts, strict=True)]


@given(logs(), DISCOUNTS)
def test_a_mixture_that_is_all_behaviour_has_ratio_one(log, discount):
    policies = {
        "a": op.PolicyColumns(target_prob="target_prob"),
        "pi0": op.PolicyColumns(mixture_of="a", alpha=1.0),
        "same": op.PolicyColumns(mixture_of="a", alpha=0.0),
    }
    ev = op.evaluate(log, discount=discount, policies=policies)
    for estimator in IMPORTANCE:
        assert ev["pi0", estimator].value == near(ev["behavior", "mc"].value)
        assert ev["same", estimator].value == near(ev["a", estimator].value)


@given(logs(), st.sampled_from([2.0, -0.5, 8.0]))
def test_a_constant_return_is_exact_for_wis(log, reward):
    first = log.filter(pl.col("step") == pl.col("step").min()).with_columns(reward=reward)
    ev = op.evaluate(first, estimators=["wis", "step-wis"])
    for estimator in ("wis", "step-wis"):
        assert ev[estimator].value == reward
        assert ev[estimator].std_error == 0.0


@given(logs(), NUMBERS, DISCOUNTS)
def test_a_constant_reward_and_length_leave_no_error(log, reward, discount):
    length = log.group_by("episode").len()["len"].min()
    fixed = log.filter(pl.col("step") < log["step"].min() + length).with_columns(reward=reward)
    ev = op.evaluate(fixed, discount=discount, estimators=["mc", "wis", "step-wis"])
    for estimator in ("wis", "step-wis"):
        assert ev[estimator].value == near(ev["mc"].value)
        assert ev[estimator].std_error <= 1e-13 * abs(ev["mc"].value)


@given(logs(), st.sampled_from([0.0, 0.5, 1.0]))
def test_the_true_values_of_a_deterministic_world_leave_no_variance(log, discount):
    """Integers as rewards, one for each step; Q̂=V̂ is what the rest of the longest episode earns."""
    longest = log.group_by("episode").len()["len"].max()
    rewards = [float(t % 3 + 1) for t in range(longest)]
    to_go = [0.0]
    for reward in reversed(rewards):
        to_go.insert(0, reward + discount * to_go[0])
    n = log["episode"].n_unique()
    world = skeleton([longest] * n).with_columns(
        reward=pl.Series(rewards * n), q_hat=pl.Series(to_go[:-1] * n), v_hat=pl.Series(to_go[:-1] * n)
    )
    ratios = pl.Series([0.5, 2.0, 4.0, 0.25, 1.0] * world.height)[: world.height]
    ev = op.evaluate(world.with_columns(ratio=ratios), discount=discount)
    assert set(ev.values("dr")["value"]) == {to_go[0]}
    assert ev["dr"].std_error == 0.0
    assert ev["wdr"].value == near(to_go[0])


@given(logs(), DISCOUNTS)
def test_absorbing_steps_change_nothing(log, discount):
    horizon = log.group_by("episode").len()["len"].max()
    first = log["step"].min()
    grid = skeleton([horizon] * log["episode"].n_unique(), first_step=first)
    padded = grid.join(log, on=["episode", "step"], how="left", maintain_order="left").with_columns(
        pl.col("reward", "q_hat", "v_hat", "r_hat").fill_null(0.0),
        pl.col("behavior_prob", "target_prob", "transition_ratio").fill_null(1.0),
    )
    before = op.evaluate(log, discount=discount)
    after = op.evaluate(padded, discount=discount)
    columns = ["estimator", "value", "episodes", "ess"]
    before, after = (ev.table.filter(pl.col("estimator") != "magic") for ev in (before, after))
    assert after.select(columns).equals(before.select(columns))
    assert after["std_error"].to_list() == [near(x) for x in before["std_error"]]


@given(logs(), DISCOUNTS)
def test_a_doubled_log_keeps_the_value_and_shrinks_the_error(log, discount):
    twice = pl.concat([log, log.with_columns(episode=pl.col("episode") + 100)])
    before, after = evaluate(log, discount), evaluate(twice, discount)
    n = before.episodes
    for estimator in UNIQUE:
        scale = terms(log, estimator, discount)
        assert after[estimator].value == near(before[estimator].value, scale)
        shrunk = before[estimator].std_error * ((n - 1) / (2 * n - 1)) ** 0.5
        assert after[estimator].std_error == near(shrunk, scale)


@given(logs(), DISCOUNTS)
def test_the_estimate_is_the_mean_of_the_values(log, discount):
    ev = evaluate(log, discount)
    for estimator in UNIQUE:
        values = ev.values(estimator)["value"]
        assert ev[estimator].value == near(sum(values) / len(values), values.abs().max())


@given(logs())
def test_without_a_future_only_the_first_step_counts(log):
    first = log.filter(pl.col("step") == log["step"].min())
    whole, part = op.evaluate(log, discount=0.0), op.evaluate(first, discount=0.0)
    for estimator in ("mc", "step-is", "step-wis", "reg", "dr", "wdr"):
        assert whole[estimator].value == part[estimator].value
        assert whole[estimator].std_error == part[estimator].std_error


@given(logs(), st.sampled_from(["normal", "t"]))
def test_opposite_rewards_swap_the_endpoints(log, method):
    opposite = log.with_columns(pl.col("reward", "q_hat", "v_hat", "r_hat") * -1.0)
    plus = op.evaluate(log, discount=0.9, interval=method)
    minus = op.evaluate(opposite, discount=0.9, interval=method)
    for estimator in ("mc", *IMPORTANCE, *MODEL):
        assert (minus[estimator].low, minus[estimator].high) == (
            -plus[estimator].high,
            -plus[estimator].low,
        )


@given(logs(min_episodes=2))
def test_the_effective_sample_size_is_between_one_and_n(log):
    ev = evaluate(log)
    for row in ev.table.iter_rows(named=True):
        assert 1 - 1e-12 <= row["ess"] <= row["episodes"] * (1 + 1e-12)


@given(logs(min_episodes=3), st.integers(0, 2))
def test_a_target_that_never_acts_has_weight_zero(log, which):
    assume(which < log["episode"].n_unique())
    dead = log.with_columns(target_prob=pl.when(pl.col("episode") == which).then(0.0).otherwise("target_prob"))
    ev = evaluate(dead)
    for estimator in ("is", "step-is", "wis", "step-wis"):
        assert ev.values(estimator)["value"][which] == 0.0
