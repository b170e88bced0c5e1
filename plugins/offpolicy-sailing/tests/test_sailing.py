"""The lake against what can be said by hand, and the simulator against the exact arrays."""

import doctest
from math import sqrt

import numpy as np
import offpolicy as op
import pytest
from offpolicy.policies import Mixture
from offpolicy_sailing import Sailing, domain, exact
from offpolicy_sailing.exact import Exact
from offpolicy_sailing.wind import TURNS

N, NE, E, SE, S, SW, W, NW = range(8)
LAKE = Sailing()


def moves(states, actions, lake=LAKE):
    return lake.step(np.array(states), np.array(actions), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("previous", "wind", "heading", "cost"),
    [
        (N, N, N, 1.0),  # with the wind
        (N, N, NE, 2 * sqrt(2)),
        (N, N, E, 3.0),
        (N, N, SE, 4 * sqrt(2)),
        (NE, N, NW, 2 * sqrt(2) + 3),  # the wind changes sides
        (SW, N, SE, 4 * sqrt(2) + 3),  # the worst there is
        (SE, N, NE, 2 * sqrt(2)),  # it stays on its side
        (NW, NE, E, 2.0 + 3),
        (NE, NE, E, 2.0),  # from straight behind to a side
        (SW, NE, E, 2.0),  # from straight ahead to a side
        (E, W, NW, 2 * sqrt(2)),  # it came from straight ahead
        (NW, W, SW, 2 * sqrt(2) + 3),  # around the turn from 7 to 0
    ],
)
def test_cost_by_hand(previous, wind, heading, cost):
    _, reward, _ = moves([[4, 4, previous, wind]], [heading])
    assert reward[0] == -cost


def test_the_lowest_reward_is_reached_and_never_passed():
    assert LAKE.reward_range == (-3 - 4 * sqrt(2), 0.0)
    assert Exact(LAKE).rewards.min() == LAKE.reward_range[0]


@pytest.mark.parametrize(
    ("state", "legal"),
    [
        ((4, 4, N, N), [N, NE, E, SE, SW, W, NW]),
        ((0, 0, N, S), [NE, E]),  # two shores, and against the wind
        ((0, 0, N, N), [N, NE, E]),
        ((9, 4, N, W), [N, S, SW, W, NW]),
        ((0, 9, N, SE), [E, SE, S]),
    ],
)
def test_legal_headings_by_hand(state, legal):
    assert np.flatnonzero(LAKE.legal(np.array([state]))[0]).tolist() == legal


def test_a_wind_from_the_north_is_one_toward_the_south():
    other, states = Sailing(wind="from"), np.array([[4, 4, E, N]])
    assert np.flatnonzero(other.legal(states)[0]).tolist() == [NE, E, SE, S, SW, W, NW]
    assert moves(states, [S], other)[1][0] == -1.0


def test_moves_and_arrival_by_hand():
    states = [[8, 8, N, N], [8, 9, N, N], [0, 0, N, E], [3, 5, W, NW]]
    following, _, done = moves(states, [NE, E, N, W])
    assert following[:, :3].tolist() == [[9, 9, NE], [9, 9, E], [0, 1, N], [2, 5, W]]
    assert done.tolist() == [True, True, False, False]


def test_a_forbidden_heading_is_refused():
    with pytest.raises(op.UsageError, match=r"row 1: heading 4 is forbidden in state \[4, 4, 0, 0\]"):
        moves([[4, 4, N, E], [4, 4, N, N]], [N, S])


@pytest.mark.parametrize("options", [{"start": "centre"}, {"wind": "up"}, {"size": 1}, {"horizon": 0}])
def test_choices_that_there_are_not(options):
    with pytest.raises(op.UsageError, match=next(iter(options))):
        Sailing(**options)


def test_the_wind_turns_as_its_matrix_says():
    assert TURNS.sum(axis=1) == pytest.approx(1, abs=1e-15)
    n = 40_000
    winds = np.repeat(np.arange(8), n)
    states = np.column_stack([np.full((8 * n, 2), 4), winds, winds])
    following, _, _ = LAKE.step(states, winds, np.random.default_rng(5))
    share = np.array([np.bincount(following[winds == w, 3], minlength=8) / n for w in range(8)])
    assert (np.abs(share - TURNS) <= 4 * np.sqrt(TURNS * (1 - TURNS) / n)).all()


@pytest.mark.parametrize(("start", "places"), [("uniform", 99), ("corner", 1)])
def test_first_states(start, places):
    states = Sailing(start=start).reset(20_000, np.random.default_rng(3))
    assert len(np.unique(states[:, :2], axis=0)) == places
    assert not Sailing().at_goal(states).any()
    assert [set(states[:, i]) for i in (2, 3)] == [set(range(8))] * 2


@pytest.mark.parametrize("start", ["uniform", "corner"])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_simulated_values_are_the_exact_ones(start, alpha):
    lake = Sailing(start=start)
    model = Exact(lake)
    policy = Mixture(model.optimal_policy(0.99), lake.behavior, alpha)
    log = lake.simulate(policy, n=4000, seed=11)
    simulated = op.evaluate(log, discount=0.99, estimators=["mc"])["mc"]
    value = model.start @ model.values(policy, lake.horizon, lake.discount)[lake.horizon]
    assert abs(simulated.value - value) < 4 * simulated.std_error


@pytest.mark.parametrize("module", [domain, exact])
def test_examples_run(module):
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)


def test_the_plugin_is_found_by_name():
    assert op.domain("sailing", start="corner") == Sailing(start="corner")


def test_a_kernel_model_of_a_log_knows_the_lake():
    """End to end: its values of the behaviour policy are near the exact ones, its best policy nearly the best."""
    truth = Exact(LAKE)
    log = LAKE.simulate(LAKE.behavior, n=2500, seed=7)
    model = op.fitter("kernel").fit(log, LAKE)
    values = model.values(LAKE.behavior, LAKE.horizon, LAKE.discount)
    states = LAKE.reset(2000, np.random.default_rng(1))
    known = truth.values(LAKE.behavior, LAKE.horizon, LAKE.discount)[LAKE.horizon]
    assert values.v_hat(states, 0).mean() == pytest.approx(known[LAKE.grid.index(states)].mean(), rel=0.03)
    best, learned = (
        truth.start @ truth.values(policy, LAKE.horizon, LAKE.discount)[LAKE.horizon]
        for policy in (truth.optimal_policy(LAKE.discount), model.optimal_policy())
    )
    assert best >= learned > 1.1 * best  # rewards are negative


def test_a_model_never_recommends_what_is_forbidden():
    log = LAKE.simulate(LAKE.behavior, n=50, seed=2)
    pi = op.fitter("kernel").fit(log, LAKE).optimal_policy().table
    assert not pi[~Exact(LAKE).legal].any()


@pytest.mark.parametrize("state", [(-1, 3, 0, 0), (10, 3, 0, 0), (3, -1, 0, 0), (3, 12, 0, 0)])
def test_nothing_is_legal_off_the_lake(state):
    assert not LAKE.legal(np.array([state])).any()
