"""A log in memory: step-is, step-wis and dr with their standard errors in one call, against other ways to do it."""

import pytest
from workload import DISCOUNT


def _race(contest, size, ours, log, run, data, rounds):
    contest.race(lambda: ours.evaluate(log), lambda: run(data, DISCOUNT), rows=size.memory_rows, rounds=rounds)


@pytest.mark.bar("numba")
def test_numba(contest, size, ours, log, peer):
    loop = peer("numba_loop")
    _race(contest, size, ours, log, loop.run, loop.prepare(log), size.rounds)


@pytest.mark.bar("numba_from_log")
def test_numba_from_log(contest, size, ours, log, peer):
    loop = peer("numba_loop")
    _race(contest, size, ours, log, loop.run_from_log, loop.prepare(log), size.rounds)


@pytest.mark.bar("numpy")
def test_numpy(contest, size, ours, log, peer):
    dense = peer("numpy_dense")
    _race(contest, size, ours, log, dense.run, dense.prepare(log), size.rounds)


@pytest.mark.bar("polars")
def test_polars(contest, size, ours, log, peer):
    query = peer("polars_query")
    _race(contest, size, ours, log, query.run, query.prepare(log), size.rounds)


@pytest.mark.bar("scope_rl")
def test_scope_rl(contest, size, ours, log, peer):
    scope_rl = peer("scope_rl")
    _race(contest, size, ours, log, scope_rl.run, scope_rl.prepare(log), size.slow_rounds)
