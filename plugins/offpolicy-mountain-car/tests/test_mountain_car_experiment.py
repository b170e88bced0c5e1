"""One run of the paper's comparison, at a small size."""

from dataclasses import replace

import numpy as np
import offpolicy as op
from offpolicy.experiments.mountain_car import experiment, true_value


def test_a_run_is_reproducible_and_within_the_possible_returns():
    small = replace(experiment(), train=200, total=100, sizes=(5, 50, 95))
    run = small.run(np.random.SeedSequence(1))
    assert run == small.run(np.random.SeedSequence(1))
    low = -sum(0.99**t for t in range(100))
    for estimates in [*run["estimates"].values(), [run["two_fold_dr"]]]:
        assert np.array(estimates).shape in ((3, 4), (1, 4))
        assert ((low <= np.array(estimates)) & (np.array(estimates) <= 0)).all()
    assert all(low <= value <= 0 for value in run["truth"])


def test_the_truth_by_spread_starts_is_that_of_plain_simulation():
    car = op.domain("mountain-car")
    value, error = true_value(car, car.behavior, np.random.SeedSequence(2))
    plain = op.evaluate(car.simulate(car.behavior, 5000, seed=3), discount=0.99, estimators=["mc"])["mc"]
    assert abs(value - plain.value) < 4 * np.hypot(error, plain.std_error)
    assert error < plain.std_error
