"""The car against a slow reference, step by step, and against values known from elsewhere."""

import math

import numpy as np
import offpolicy as op
import pytest
from offpolicy.simulation.domain_policies import domain_policy
from offpolicy_mountain_car import MountainCar


def reference(x, v, a, substeps, at_once=True):
    """One step of one car in plain floats: x, v, and whether it has arrived."""
    for _ in range(substeps):
        if at_once and x >= 0.6:
            break
        v = v + 0.001 * (a - 1) - 0.0025 * math.cos(3 * x)
        v = min(max(v, -0.07), 0.07)
        x = min(max(x + v, -1.2), 0.6)
        if x == -1.2 and v < 0:
            v = 0.0
    return x, v, x >= 0.6


def corners(rng):
    """States all over the space, and many at walls, at the goal, at rest and at top speed."""
    x, v = rng.uniform(-1.2, 0.6, 4000), rng.uniform(-0.07, 0.07, 4000)
    edges = [
        (a, b)
        for a in (-1.2, -1.1999, -1.1, 0.45, 0.55, 0.5999, 0.6)
        for b in (-0.07, -0.0699, 0.0, 0.0005, 0.0699, 0.07)
    ]
    return np.concatenate([np.stack([x, v], axis=1), edges])


@pytest.mark.parametrize("stop", ["at-once", "after-step"])
@pytest.mark.parametrize("substeps", [1, 2, 4])
def test_a_step_is_that_of_the_reference(substeps, stop):
    rng = np.random.default_rng(5)
    states = corners(rng)
    car = MountainCar(substeps=substeps, stop=stop)
    for actions in (rng.integers(0, 3, len(states)), *(np.full(len(states), a) for a in range(3))):
        given = states.copy()
        after, rewards, done = car.step(given, actions, rng)
        assert np.array_equal(given, states)
        expected = [
            reference(float(x), float(v), int(a), substeps, stop == "at-once")
            for (x, v), a in zip(states, actions, strict=True)
        ]
        assert after == pytest.approx(np.array([row[:2] for row in expected]), abs=1e-15)
        assert done.tolist() == [row[2] for row in expected]
        assert (rewards == -1).all()
        assert done.any()
        assert not done.all()


def test_a_car_that_arrives_within_a_step_stops_there():
    fast = np.array([[0.55, 0.07]])
    after, _, done = MountainCar(substeps=4).step(fast, np.array([2]), np.random.default_rng())
    first, _, _ = MountainCar(substeps=1).step(fast, np.array([2]), np.random.default_rng())
    assert done.tolist() == [True]
    assert after.tolist() == first.tolist()


def simulated(car, policy, episodes, seed):
    """The log of a policy, its mean return and the standard error of that."""
    log = car.simulate(domain_policy(car, policy), episodes, seed)
    ev = op.evaluate(log, discount=car.discount, horizon=car.horizon, estimators=["mc"])
    return log, ev["mc"].value, ev["mc"].std_error


def test_the_behaviour_policy_has_its_known_value_length_and_share_of_arrivals():
    n = 8192
    log, value, error = simulated(MountainCar(), "behavior", n, seed=7)
    lengths = log.group_by("episode").len()["len"]
    assert abs(value - -46.10) < 4 * math.hypot(error, 0.04)
    assert abs(lengths.mean() - 70.6) < 4 * lengths.std() / math.sqrt(n) + 0.05
    assert abs(log["terminal"].sum() / n - 0.391) < 4 * math.sqrt(0.391 * 0.609 / n) + 0.0005


@pytest.mark.parametrize(
    ("parameters", "policy", "known", "digits"),
    [({}, "along-velocity", -12.65, 0.005), ({"substeps": 1}, "behavior", -53.0, 0.05)],
)
def test_other_known_values(parameters, policy, known, digits):
    _, value, error = simulated(MountainCar(**parameters), policy, 8192, seed=8)
    assert abs(value - known) < 4 * error + digits


def test_the_grid_is_that_of_the_paper_and_holds_every_state():
    car = MountainCar()
    assert (car.grid.size, car.grid.cells) == ((116, 37), 4292)
    log = car.simulate(car.behavior, 200, seed=1)
    for columns in (["x", "v"], ["next_x", "next_v"]):
        index = car.grid.index(log.select(columns).to_numpy())
        assert 0 <= index.min() <= index.max() < 4292


def test_starts():
    rng = np.random.default_rng(2)
    uniform = MountainCar().reset(20_000, rng)
    assert uniform.mean(axis=0) == pytest.approx([-0.3, 0.0], abs=0.02)
    assert uniform.min(axis=0) == pytest.approx([-1.2, -0.07], abs=1e-3)
    assert uniform.max(axis=0) == pytest.approx([0.6, 0.07], abs=1e-3)
    valley = MountainCar(start="valley").reset(1000, rng)
    assert (valley[:, 1] == 0).all()
    assert -0.6 <= valley[:, 0].min() < valley[:, 0].max() <= -0.4


def test_rewards_are_in_their_range_and_every_step_costs_one():
    car = MountainCar()
    low, high = car.reward_range
    rewards = car.simulate(car.behavior, 100, seed=3)["reward"]
    assert set(rewards.to_list()) == {-1.0}
    assert low <= -1.0 <= high
    assert high == 0.0  # an absorbed episode earns nothing more


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"substeps": 0}, "substeps must be a whole number of at least 1, not 0"),
        ({"horizon": 2.5}, "horizon must be a whole number of at least 1, not 2.5"),
        ({"horizon": True}, "horizon must be a whole number of at least 1, not True"),
        ({"discount": 1.5}, "discount must be between 0 and 1, not 1.5"),
        ({"discount": "x"}, "discount must be between 0 and 1, not 'x'"),
        ({"start": "top"}, "start must be one of 'uniform', 'valley', not 'top'"),
        ({"stop": "never"}, "stop must be one of 'at-once', 'after-step', not 'never'"),
        ({"substep": 4}, "domain 'mountain-car' has no parameter 'substep'; did you mean 'substeps'?"),
    ],
)
def test_parameters_without_a_meaning_are_refused(parameters, message):
    with pytest.raises(op.UsageError) as error:
        op.domain("mountain-car", **parameters)
    assert str(error.value) == message


def test_the_domain_is_found_by_name():
    assert op.domain("mountain-car", substeps=1) == MountainCar(substeps=1)
