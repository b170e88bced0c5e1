"""Intervals that are made from single trajectories: the bootstrap over all of them, and betting by their sketch.

The cost of a bootstrap is trajectories × replicates, whatever the number of steps, so its "rows" are these products.
"""

import itertools
import time

import offpolicy as op
import pytest
import workload


@pytest.fixture(scope="module")
def seeds():
    """Return a counter that gives a new seed to every call, because an evaluation keeps the replicates of a seed."""
    return itertools.count()


@pytest.fixture(scope="module")
def bandits(size):
    """Return a log with two steps per trajectory."""
    return workload.log(40_000 if size.small else 2_000_000, steps=2)


def _process_seconds(contest, call):
    """Measure the processor time of one call, which is enough because the call takes seconds."""

    def spent():
        start = time.process_time()
        call()
        return time.process_time() - start

    return contest.benchmark.pedantic(spent, rounds=1)


def _bootstrap(evaluation, estimator, replicates, seed):
    found = evaluation[estimator].interval(method="bootstrap", replicates=replicates, seed=seed)
    assert found.low < evaluation[estimator].value < found.high


@pytest.mark.bar("bootstrap")
def test_bootstrap(contest, size, ours, seeds, peer):
    numpy_bootstrap = peer("numpy_bootstrap")
    episodes, replicates = 20_000, 1000
    ev = ours.evaluate(workload.log(2 * episodes, steps=2), estimators=["step-is"])
    values = ev.values("step-is")["value"].to_numpy()
    contest.race(
        lambda: _bootstrap(ev, "step-is", replicates, next(seeds)),
        lambda: numpy_bootstrap.run(values, replicates, next(seeds)),
        rows=episodes * replicates,
        rounds=size.slow_rounds,
    )


@pytest.mark.bar("bootstrap_core")
def test_bootstrap_core(contest, size, ours, bandits, seeds):
    replicates = 1000 if size.small else 10_000
    ev = ours.evaluate(bandits, estimators=["step-is"])
    seconds = _process_seconds(contest, lambda: _bootstrap(ev, "step-is", replicates, next(seeds)))
    contest.record(seconds, None, rows=ev.episodes * replicates)


@pytest.mark.bar("bootstrap_step_wis_core")
def test_bootstrap_step_wis_core(contest, size, ours, log, seeds):
    replicates = 400 if size.small else 10_000
    ev = ours.evaluate(log, estimators=["step-wis"])
    seconds = _process_seconds(contest, lambda: _bootstrap(ev, "step-wis", replicates, next(seeds)))
    contest.record(seconds, None, rows=ev.episodes * replicates)


@pytest.mark.bar("betting_core")
def test_betting_core(contest, ours, bandits):
    bounds = op.Bounds(reward=(-10.0, 10.0))
    ev = ours.evaluate(bandits, estimators=["step-is"], horizon=2, bounds=bounds)

    def both_ends():
        found = ev["step-is"].interval(method="betting")
        assert found.low < ev["step-is"].value < found.high

    contest.record(_process_seconds(contest, both_ends), None, rows=ev.episodes)
