"""Blocks of whole trajectories: what they tell of a trajectory is the same in any block."""

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from offpolicy.logs.block import Block


def block(lengths, **columns):
    n = len(lengths)
    arrays = {name: np.asarray(x, dtype=float) for name, x in columns.items()}
    return Block(pl.Series(range(n)), np.array(lengths), arrays, discount=0.5, horizon=max(lengths))


def test_rows_know_their_trajectory_and_step():
    found = block([2, 1, 3], reward=range(6))
    assert found.starts.tolist() == [0, 2, 3]
    assert found.trajectory.tolist() == [0, 0, 1, 2, 2, 2]
    assert found.step.tolist() == [0, 1, 0, 0, 1, 2]
    assert found.discounts.tolist() == [1, 0.5, 1, 1, 0.5, 0.25]
    assert found.by_trajectory_sum(found["reward"]).tolist() == [1, 2, 12]


@pytest.mark.parametrize("lengths", [[50], [3, 1, 4, 1, 5, 9, 2, 6], [1] * 9, [20, 1]])
def test_products_are_those_of_each_trajectory_alone_to_the_last_bit(lengths):
    rho = np.random.default_rng(0).uniform(0.3, 2.5, sum(lengths))
    c, start = block(lengths, ratio=rho).cumulative_ratio(), 0
    for length in lengths:
        assert c[start : start + length].tolist() == np.cumprod(rho[start : start + length]).tolist()
        start += length


def test_products_may_leave_the_range_of_floats_and_come_back():
    rho = np.concatenate([np.full(2000, 0.5), np.full(2000, 2.0)])
    c = block([4000, 2], ratio=[*rho, 3.0, 2.0]).cumulative_ratio()
    assert c[3999] == 1.0
    assert (c[1999], c[500]) == (0.0, 2.0**-501)
    assert c[4000:].tolist() == [3.0, 6.0]


def test_a_ratio_of_0_stays_0():
    assert block([3, 2], ratio=[2, 0, 5, 1, 3]).cumulative_ratio().tolist() == [2, 0, 0, 1, 3]
    rho = np.concatenate([np.full(2000, 0.5), [0.0], np.full(3000, 2.0)])
    assert block([5001], ratio=rho).cumulative_ratio()[-1] == 0.0


def test_a_product_that_no_float_holds_is_refused_with_its_log10():
    rho = [*np.ones(3), *np.full(1100, 2.0)]
    with pytest.raises(op.OffPolicyError, match=r"ratios of episode 1 up to t = 1024 .* log10 308.3: no f64 can hold"):
        block([3, 1100], ratio=rho).cumulative_ratio()


def test_other_ratios_can_be_multiplied_too():
    found = block([2, 1], ratio=[2, 2, 2])
    assert found.cumulative_ratio(np.minimum(found["ratio"], 1.5)).tolist() == [1.5, 2.25, 1.5]


def test_what_was_not_declared_cannot_be_read():
    with pytest.raises(op.PluginError, match=r"the estimator reads 'q_hat', which is not among its needs"):
        block([1], reward=[1.0])["q_hat"]
