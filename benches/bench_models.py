"""Models at the size of the paper's experiments: fit and evaluate one of Mountain Car, and annotate a log by it."""

import offpolicy as op
import pytest
from car import DISCOUNT, HORIZON, Car, log, mixtures, steps

EPISODES = 5000


@pytest.fixture(scope="module")
def car_log():
    return log(EPISODES)


@pytest.fixture(scope="module")
def model(car_log):
    return op.fitter("tabular").fit(car_log, Car())


@pytest.mark.bar("tabular")
def test_tabular(contest, size, car_log, model, peer):
    scipy_sparse = peer("scipy_sparse")
    policies = mixtures(model.optimal_policy())
    tables = scipy_sparse.tables(policies)
    contest.race(
        lambda: op.fitter("tabular").fit(car_log, Car()).values_of(policies, HORIZON, DISCOUNT),
        lambda: scipy_sparse.run(car_log, tables),
        rows=car_log.height,
        rounds=size.rounds,
    )


@pytest.mark.bar("annotate")
def test_annotate(contest, size, model, peer):
    numpy_lookup = peer("numpy_lookup")
    frame, policy = steps(size.memory_rows), model.optimal_policy()
    values = model.values(policy, HORIZON, DISCOUNT)
    tables = numpy_lookup.prepare(policy, values)
    contest.race(
        lambda: op.annotate(frame, policy, values, threads=2),
        lambda: numpy_lookup.run(frame, tables),
        rows=frame.height,
        rounds=size.rounds,
    )
