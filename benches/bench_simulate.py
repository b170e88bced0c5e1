"""Mountain Car under the uniform policy: the trajectories of one of the paper's runs."""

import pytest

_STEPS = 70.6
"""Mean length of an episode."""


@pytest.fixture
def episodes(size):
    return 1000 if size.small else 5000


@pytest.fixture
def simulate(episodes):
    mountain_car = pytest.importorskip("offpolicy_mountain_car", reason="offpolicy-mountain-car is not installed")
    car = mountain_car.MountainCar()
    return lambda: car.simulate(car.behavior, episodes, seed=1)


@pytest.mark.bar("simulate")
def test_simulate(contest, size, simulate, episodes, peer):
    loop = peer("gymnasium_loop")
    contest.race(simulate, lambda: loop.run(episodes, 1), rows=int(episodes * _STEPS), rounds=size.slow_rounds)


@pytest.mark.bar("simulate_core")
def test_simulate_core(contest, size, simulate, episodes):
    contest.one_core(simulate, rows=int(episodes * _STEPS), rounds=size.rounds)
