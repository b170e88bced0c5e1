"""Sketches of values: rounded down and hardly, merged in any way to the same bytes, refused when damaged."""

import struct
from functools import reduce
from hashlib import blake2b

import numpy as np
import offpolicy as op
import pytest
from hypothesis import given
from hypothesis import strategies as st
from offpolicy.folds import fold_of, share_of
from offpolicy.intervals import anderson, betting, hcope, sequence
from offpolicy.intervals.sketch import ROUNDS, BelowFloorError, Sketch, rounded, rounds_of

finite = st.floats(-1e9, 1e9, allow_nan=False)


@given(values=st.lists(finite, min_size=1, max_size=20), below=st.floats(0, 1e9))
def test_values_are_rounded_down_and_by_little(values, below):
    values = np.array(values)
    floor = values.min() - below
    exact, found = values - floor, rounded(values, floor)
    noise = 2.0**-40 * abs(floor)
    assert (found <= exact + 2.0**-50 * np.abs(values) + 2.0**-50 * abs(floor)).all()
    assert (exact - found <= 2.0**-14 * np.minimum(exact, np.abs(values)) + noise + 1e-300).all()
    assert (found >= 0).all()


def test_the_floor_and_zero_keep_their_place():
    found = rounded(np.array([-3.0, 0.0, 5e-324, 1e-310]), -3.0)
    assert found.tolist() == [0.0, 3.0, 3.0, 3.0]
    assert rounded(np.array([0.0, -0.0, 5e-324]), 0.0).tolist() == [0.0, 0.0, 0.0]
    assert not np.signbit(rounded(np.array([-0.0]), 0.0)).any()


@given(order=st.permutations(range(5)), seed=st.integers(0, 99))
def test_parts_merge_in_any_order_to_the_same_bytes(order, seed):
    rng = np.random.default_rng(seed)
    ids, values = rng.permutation(200), rng.normal(size=200) * 10.0 ** rng.uniform(-3, 3, 200)
    floor = values.min()
    whole = Sketch.of(ids, values, floor).to_bytes()
    part = rng.integers(0, 5, 200)
    parts = [Sketch.of(ids[part == k], values[part == k], floor) for k in order]
    first, *others = [Sketch.from_bytes(each.to_bytes()) for each in parts]
    for other in others:
        first = first.merge(other)
    assert first.to_bytes() == whole
    left = parts[0].merge(parts[1]).merge(parts[2].merge(parts[3].merge(parts[4])))
    assert left.to_bytes() == whole


def test_a_sketch_without_trajectories_merges():
    some = Sketch.of([1, 2], np.array([1.0, 2.0]), 0.0)
    none = Sketch.of([], np.zeros(0), 0.0)
    assert none.merge(some).to_bytes() == some.merge(none).to_bytes() == some.to_bytes()


def test_sketches_above_other_floors_do_not_merge():
    with pytest.raises(op.UsageError, match="cannot be merged"):
        Sketch.of([1], np.ones(1), 0.0).merge(Sketch.of([2], np.ones(1), 1.0))


def test_values_below_the_floor_are_refused_but_for_rounding():
    with pytest.raises(BelowFloorError, match=r"value 0\.9, below 1"):
        Sketch.of([1, 2], np.array([2.0, 0.9]), 1.0)
    assert Sketch.of([1], np.array([1 - 2.0**-50]), 1.0).x.tolist() == [0.0]


def test_damaged_bytes_are_refused():
    content = Sketch.of(range(20), np.linspace(0, 1, 20), 0.0).to_bytes()
    for i in range(len(content)):
        with pytest.raises(op.OffPolicyError):
            Sketch.from_bytes(content[:i] + bytes([content[i] ^ 1]) + content[i + 1 :])
    for short in (b"", content[:10], content[:-1], b"no sketch at all, but long enough to be one"):
        with pytest.raises(op.OffPolicyError):
            Sketch.from_bytes(short)


def test_bytes_of_another_version_are_refused_by_name():
    """Those of version 1 had five rounds."""
    header = struct.pack("<8sHHdQ", b"opsketch", 1, 14, 0.0, 1)
    body = header + np.ones(1).tobytes() + np.ones(5, dtype=np.int64).tobytes()
    with pytest.raises(op.OffPolicyError, match="a sketch of version 1 with 14 bits cannot be read"):
        Sketch.from_bytes(body + blake2b(body, digest_size=16).digest())


def test_rounds_have_their_shares_and_cut_across_folds():
    ids = np.arange(100_000)
    counts = Sketch.of(ids, np.ones(len(ids)), 0.0).counts.sum(axis=1)
    assert len(counts) == ROUNDS
    assert np.abs(counts - len(ids) / ROUNDS).max() < 5 * np.sqrt(len(ids) / ROUNDS)
    first = rounds_of(ids) < 0.05 * ROUNDS
    assert abs(first[fold_of(ids, 5) == 0].mean() - 0.05) < 0.005
    assert abs(first[share_of(ids) < 0.5].mean() - 0.05) < 0.005


@pytest.mark.parametrize("module", [betting, sequence, anderson, hcope])
@pytest.mark.parametrize("floor", [0.0, -30.0])
def test_rounding_costs_next_to_nothing(module, floor, monkeypatch):
    n = 20_000
    values = np.exp(np.random.default_rng(2).normal(size=n))
    found = module.lower(Sketch.of(range(n), values, floor), 0.05)
    monkeypatch.setattr("offpolicy.intervals.sketch.BITS", 52)
    exact = module.lower(Sketch.of(range(n), values, floor), 0.05)
    error = values.std() / np.sqrt(n)
    assert 0 <= exact - found < 0.02 * error


@pytest.mark.parametrize("estimator", ["step-is", "is"])
@pytest.mark.parametrize("method", [betting, sequence])
def test_an_interval_by_ratios_is_that_of_two_sketches_of_any_parts(estimator, method):
    log, bounds = op.demo_log(episodes=200), op.Bounds(reward=(-1, 1), ratio=1.6)
    whole, *parts = (
        op.evaluate(part, discount=0.9, horizon=10, estimators=[estimator], bounds=bounds)[estimator]
        for part in (log, *(log.filter(log["episode"] % 3 == k) for k in (2, 0, 1)))
    )
    for side, sign in (("lower", 1.0), ("upper", -1.0)):
        merged = []
        for by in ("rewards", "ratios"):
            first, *others = (part.sketch(side=side, by=by) for part in parts)
            merged.append(reduce(Sketch.merge, others, first))
            assert merged[-1].to_bytes() == whole.sketch(side=side, by=by).to_bytes()
        first, second = merged
        found = whole.interval(0.9, method.__name__.split(".")[-1], side=side)
        end = found.low if side == "lower" else found.high
        assert end == sign * (first.floor + method.lower(first, 1 - 0.9, second))
    with pytest.raises(op.UsageError, match="by must be one of 'rewards', 'ratios', not 'weights'"):
        whole.sketch(by="weights")
    with pytest.raises(op.UsageError, match="side must be one of 'lower', 'upper', not 'two'"):
        whole.sketch(side="two")


@pytest.mark.parametrize("estimator", ["step-is", "is"])
def test_an_evaluation_gives_its_sketch(estimator, monkeypatch):
    log = op.demo_log(episodes=200)
    bounds = op.Bounds(reward=(0, 1))
    monday, tuesday = (log.filter(log["episode"] % 2 == k) for k in (0, 1))

    def sketch(part, side):
        ev = op.evaluate(part, discount=0.9, horizon=10, estimators=[estimator], bounds=bounds)
        return ev[estimator].sketch(side=side)

    for side, sign in (("lower", 1.0), ("upper", -1.0)):
        both = sketch(monday, side).merge(sketch(tuesday, side))
        assert both.to_bytes() == sketch(log, side).to_bytes()
        with monkeypatch.context() as small:  # blocks of a few trajectories
            small.setattr("offpolicy.logs.trajectories.ROWS", 50)
            small.setattr("offpolicy.logs.trajectories.NUMBERS", 30)
            assert both.to_bytes() == sketch(log.lazy(), side).to_bytes()
        ev = op.evaluate(log, discount=0.9, horizon=10, estimators=[estimator], bounds=bounds)
        found = ev[estimator].interval(0.9, "sequence", side=side)
        end = found.low if side == "lower" else found.high
        assert end == sign * (both.floor + sequence.lower(both, 1 - 0.9))


def test_a_sketch_is_refused_where_its_bounds_would_be():
    ev = op.evaluate(op.demo_log(episodes=20), horizon=10, estimators=["step-is", "step-wis"])
    with pytest.raises(op.OffPolicyError, match="needs bounds="):
        ev["step-is"].sketch()
    with pytest.raises(op.OffPolicyError, match="ratio of sums"):
        ev["step-wis"].sketch(op.Bounds(reward=(0, 1)))
