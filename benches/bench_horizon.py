"""Rows are the cost, not the horizon: few long episodes against many short ones.

Each step costs something too, once for the whole log; a small log has a shorter horizon, so that rows outweigh it.
"""

import pytest
from workload import log as make_log


@pytest.mark.bar("horizon")
def test_horizon(contest, size, ours, log):
    long = make_log(size.memory_rows, steps=size.long_steps)
    contest.race(lambda: ours.evaluate(long), lambda: ours.evaluate(log), rows=size.memory_rows, rounds=size.rounds)
