"""The known values of the domain: our exact value, rounded to the digits that are printed, is the printed one."""

import numpy as np
import pytest
import scipy.sparse as sp
from offpolicy.policies import Mixture
from offpolicy_sailing import Sailing
from offpolicy_sailing.exact import Exact
from offpolicy_sailing.wind import TURNS
from scipy.sparse.linalg import spsolve


@pytest.fixture(scope="module", params=["corner", "uniform"])
def lake(request):
    return Exact(Sailing(start=request.param))


def until_the_goal(exact, policy):
    """Expected steps and cost without horizon or discount, by solving (I - P) x = (1, cost)."""
    pi = policy.probabilities(exact.states, 0)
    s, a = np.nonzero((pi > 0) & ~exact.goal[:, None])
    weight = pi[s, a][:, None] * TURNS[exact.states[s, 3]]
    next_states = exact.following[s, a][:, None] * 8 + np.arange(8)
    on = (weight > 0) & ~exact.goal[next_states]
    rows = np.broadcast_to(s[:, None], on.shape)
    n = len(pi)
    transitions = sp.csc_array((weight[on], (rows[on], next_states[on])), shape=(n, n))
    cost = -(pi * exact.rewards).sum(axis=1) * ~exact.goal
    solved = spsolve(sp.eye_array(n, format="csc") - transitions, np.stack([1.0 * ~exact.goal, cost], axis=1))
    return exact.start @ solved


def test_optimal_route_without_discount(lake):
    steps, cost = until_the_goal(lake, lake.optimal_policy(1.0))
    assert (round(steps, 2), round(cost, 2)) == {"corner": (10.29, 36.65), "uniform": (6.58, 22.01)}[lake.domain.start]
    assert -(lake.start @ lake.optimal_values(1.0)) == pytest.approx(cost, rel=1e-12)


def test_random_route_without_discount(lake):
    steps, cost = until_the_goal(lake, lake.domain.behavior)
    assert round(steps, 1) == {"corner": 307.8, "uniform": 271.2}[lake.domain.start]
    if lake.domain.start == "corner":
        assert round(cost / steps, 3) == 4.387


@pytest.mark.parametrize(("alpha", "cost"), [(0.0, 34.95), (0.25, 50.23), (0.5, 79.76), (0.75, 150.11)])
def test_mixtures_from_the_corner(alpha, cost):
    """Of the policy that is optimal without discount, valued with it."""
    lake = Exact(Sailing(start="corner"))
    policy = Mixture(lake.optimal_policy(1.0), lake.domain.behavior, alpha)
    assert round(-(lake.start @ lake.values(policy, 100, 0.99)[100]), 2) == cost


def test_with_discount_another_policy_is_a_little_better():
    lake = Exact(Sailing(start="corner"))
    values = [lake.start @ lake.values(lake.optimal_policy(discount), 100, 0.99)[100] for discount in (0.99, 1.0)]
    assert [round(-value, 2) for value in values] == [34.87, 34.95]


def test_no_heading_is_better_than_the_optimal_one(lake):
    values = lake.optimal_values(0.99)
    assert np.array_equal(lake.backup(values, 0.99).max(axis=1), values)


def test_the_arrays_say_what_a_step_does():
    """(place, heading) that follow and rewards, for every legal pair of a smaller lake, against the simulator."""
    domain = Sailing(size=4, wind="from")
    exact = Exact(domain)
    s, a = np.nonzero(exact.legal & ~exact.goal[:, None])
    following, rewards, done = domain.step(exact.states[s], a, np.random.default_rng(0))
    assert np.array_equal(domain.grid.index(following) // 8, exact.following[s, a])
    assert np.array_equal(rewards, exact.rewards[s, a])
    assert np.array_equal(done, exact.goal[exact.following[s, a] * 8])


def test_one_step_of_values_is_the_mean_reward():
    lake = Exact(Sailing(size=3))
    pi = lake.domain.behavior.probabilities(lake.states, 0)
    once = lake.values(lake.domain.behavior, 1, 0.9)[1]
    assert once == pytest.approx(np.where(lake.goal, 0.0, (pi * lake.rewards).sum(axis=1)), abs=1e-14)
