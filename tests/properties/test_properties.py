"""Properties of every log (STATISTICS 6.4), on logs that hypothesis makes up: what changes nothing, and what scales.

    permutation, any cut into batches and files   test_a_permutation_…, test_any_cut_…
    merge in any bracketing                       test_states_merge_…; of sums: properties.rs of rust/core
    ids renamed                                   test_renamed_ids_…
    absorbing steps appended                      test_absorbing_steps_…
    r → ar                                        test_a_power_of_two_…, test_any_factor_…
    data doubled                                  test_a_doubled_log_…
    γ = 0                                         test_without_a_future_…
    forward form = backward recursion             test_special_cases.py
    Q̂ = 0, ρ = 1, H = 1, α = 1                    test_special_cases.py
    constant reward, deterministic MDP            test_special_cases.py
    endpoint inversion                            test_interval_properties.py

`pytest --hypothesis-profile=thorough` takes 100,000 cases of each, `PROPTEST_CASES=100000 cargo test` of those in Rust.
"""

import tempfile
from pathlib import Path

import numpy as np
import offpolicy as op
import polars as pl
import reference
from generated import BASELINE, DISCOUNTS, MODEL, groupings, logs, merged, near, terms, wild_logs
from hypothesis import given
from hypothesis import strategies as st
from logs import bits, episodes_of, file_pieces, skeleton, value_bits
from offpolicy.intervals.likelihood import SixSums
from offpolicy.intervals.replicates import Quanta, ReplicateSums
from offpolicy.intervals.sketch import Sketch

#: Sums a step of these forget what is 2^-80 of the largest addend; the others nothing that could show here.
BY_STEP = ("step-wis", "wdr")


def evaluate(log, discount=0.9, **more):
    return op.evaluate(log, discount=discount, baseline=BASELINE, **more)


def pairs(before, after):
    """The estimates of both that a log defines to the last digit."""
    both = zip(before.estimates, after.estimates, strict=True)
    return [(old, new) for old, new in both if old.estimator in reference.UNIQUE]


@given(logs(min_episodes=1, max_episodes=3, max_length=18), DISCOUNTS)
def test_every_estimator_is_its_definition(log, discount):
    ev = evaluate(log, discount)
    episodes, scales = episodes_of(log), terms(log, discount)
    for estimator, scale in scales.items():
        expected = reference.evaluate(episodes, estimator, discount, baseline=BASELINE)
        assert ev[estimator].value == near(expected.value, scale)
        assert ev[estimator].std_error == (near(expected.std_error, scale) if len(episodes) > 1 else None)


@given(wild_logs(), st.randoms(use_true_random=False))
def test_a_permutation_of_the_episodes_changes_no_bit(log, rng):
    groups = log.partition_by("episode")
    rng.shuffle(groups)
    assert bits(evaluate(pl.concat(groups))) == bits(evaluate(log))


@given(wild_logs(), st.data())
def test_any_cut_into_files_and_batches_changes_no_bit(log, data):
    cuts = data.draw(st.lists(st.integers(0, log.height), max_size=6))
    batch_rows = data.draw(st.integers(1, log.height))
    expected = bits(evaluate(log))
    with tempfile.TemporaryDirectory() as folder:
        paths = file_pieces(log, Path(folder), cuts, row_group_size=data.draw(st.integers(1, 7)))
        paths = data.draw(st.permutations(paths))
        assert bits(evaluate(paths, batch_rows=batch_rows, threads=data.draw(st.integers(1, 3)))) == expected
        assert bits(evaluate(paths, map=map)) == expected
    assert bits(evaluate(log.lazy(), batch_rows=batch_rows)) == expected


@given(logs(), st.data())
def test_any_cut_changes_no_bit_of_a_trajectory(log, data):
    cuts = data.draw(st.lists(st.integers(0, log.height), max_size=6))
    with tempfile.TemporaryDirectory() as folder:
        paths = data.draw(st.permutations(file_pieces(log, Path(folder), cuts)))
        whole, parts = evaluate(log), evaluate(paths)
        for estimator in ("dr-v2", "wdr"):
            assert value_bits(parts, estimator) == value_bits(whole, estimator)


@given(wild_logs(), st.text(max_size=3), st.data())
def test_renamed_ids_change_no_bit(log, prefix, data):
    expected = bits(evaluate(log))
    renamed = log.with_columns(episode=prefix + (100 - pl.col("episode")).cast(pl.String))
    assert bits(evaluate(renamed)) == expected
    n = log["episode"].n_unique()
    ids = data.draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=n, max_size=n, unique=True))
    renamed = log.with_columns(episode=pl.Series(ids)[log["episode"].to_list()])
    assert bits(evaluate(renamed)) == expected


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12), st.data())
def test_states_merge_in_any_bracketing_to_the_same_bits(values, data):
    """What intervals are made of; a trajectory a part."""
    x, ids = np.array(values), pl.Series(range(len(values)))
    order = data.draw(groupings(range(len(x))))

    def at(part):
        return ids[[part]], x[[part]]

    def sketch(part):
        return Sketch.of(*at(part), floor=x.min())

    found = merged(order, sketch, Sketch.merge)
    assert found.to_bytes() == Sketch.of(ids, x, floor=x.min()).to_bytes()

    weights = np.abs(x) + 1.0
    found = merged(order, lambda part: SixSums.of(weights[[part]], x[[part]]), SixSums.merge)
    assert found == SixSums.of(weights, x)

    quanta = Quanta.of([(ids, x[:, None])], len(x))

    def sums(chosen, columns):
        state = ReplicateSums(7, 1, quanta)
        state.add((chosen, columns[:, None]))
        return state

    def add(one, other):
        one.merge(other)
        return one

    found, whole = merged(order, lambda part: sums(*at(part)), add), sums(ids, x)
    assert (found.sums == whole.sums).all()
    assert (found.log == whole.log).all()


@given(logs(), DISCOUNTS, st.integers(0, 9))
def test_absorbing_steps_change_nothing(log, discount, more):
    horizon = log.group_by("episode").len()["len"].max() + more
    grid = skeleton([horizon] * log["episode"].n_unique(), first_step=log["step"].min())
    padded = grid.join(log, on=["episode", "step"], how="left", maintain_order="left").with_columns(
        pl.col(MODEL).fill_null(0.0),
        pl.col("behavior_prob", "target_prob", "transition_ratio").fill_null(1.0),
    )
    before, after = op.evaluate(log, discount=discount), op.evaluate(padded, discount=discount)
    scales = terms(log, discount)
    for old, new in pairs(before, after):
        assert (new.policy, new.estimator, new.episodes, new.ess) == (old.policy, old.estimator, old.episodes, old.ess)
        scale = scales[old.estimator]
        if old.estimator in BY_STEP:
            assert new.value == near(old.value, scale)
            assert new.std_error == near(old.std_error, scale)
        else:
            assert (new.value, new.std_error) == (old.value, old.std_error)


@given(logs(), DISCOUNTS, st.sampled_from([2.0, -0.5, 2.0**40, -(2.0**-80), 2.0**240, -1.0]))
def test_a_power_of_two_scales_rewards_exactly(log, discount, factor):
    """As 2^40 does with sums a step, whose bins are 40 bits apart."""
    before = op.evaluate(log, discount=discount)
    after = op.evaluate(log.with_columns(pl.col(MODEL) * factor), discount=discount)
    scales = terms(log, discount)
    for old, new in pairs(before, after):
        if old.estimator in BY_STEP and abs(factor) in (2.0, 0.5):
            scale = abs(factor) * scales[old.estimator]
            assert new.value == near(factor * old.value, scale)
            assert new.std_error == near(abs(factor) * old.std_error, scale)
        else:
            assert new.value == factor * old.value
            assert new.std_error == abs(factor) * old.std_error


@given(logs(), DISCOUNTS, st.floats(0.1, 50.0) | st.floats(-50.0, -0.1))
def test_any_factor_scales_rewards(log, discount, factor):
    before = op.evaluate(log, discount=discount)
    after = op.evaluate(log.with_columns(pl.col(MODEL) * factor), discount=discount)
    scales = terms(log, discount)
    for old, new in pairs(before, after):
        scale = abs(factor) * scales[old.estimator]
        assert new.value == near(factor * old.value, scale)
        assert new.std_error == near(abs(factor) * old.std_error, scale)


@given(logs(), DISCOUNTS)
def test_a_doubled_log_keeps_the_value_and_shrinks_the_error(log, discount):
    twice = pl.concat([log, log.with_columns(episode=pl.col("episode") + 100)])
    before, after = evaluate(log, discount), evaluate(twice, discount)
    n = before.episodes
    for estimator, scale in terms(log, discount).items():
        assert after[estimator].value == near(before[estimator].value, scale)
        shrunk = before[estimator].std_error * ((n - 1) / (2 * n - 1)) ** 0.5
        assert after[estimator].std_error == near(shrunk, scale)


@given(logs())
def test_without_a_future_only_the_first_step_counts(log):
    first = log.filter(pl.col("step") == log["step"].min())
    whole, part = op.evaluate(log, discount=0.0), op.evaluate(first, discount=0.0)
    for estimator in ("mc", "step-is", "step-wis", "reg", "dr", "dr-v2", "wdr"):
        assert whole[estimator].value == part[estimator].value
        assert whole[estimator].std_error == part[estimator].std_error


@given(logs(), DISCOUNTS)
def test_the_effective_sample_size_is_between_one_and_n(log, discount):
    for row in evaluate(log, discount).table.iter_rows(named=True):
        assert 1 - 1e-12 <= row["ess"] <= row["episodes"] * (1 + 1e-12)
