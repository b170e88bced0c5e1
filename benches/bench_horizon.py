"""The cost of the horizon: few long episodes must not take much longer than many short ones with as many rows.

Each step of the horizon also costs something, once for the whole log. A small log has a shorter horizon, so that the
rows outweigh this cost.
"""

import pytest
from workload import log as make_log


@pytest.mark.bar("horizon")
def test_horizon(contest, size, ours, log):
    long = make_log(size.memory_rows, steps=size.long_steps)
    contest.race(lambda: ours.evaluate(long), lambda: ours.evaluate(log), rows=size.memory_rows, rounds=size.rounds)
