"""Gymnasium environments as domains, against exact values and the environments' own steps."""

import gc
import sys
from fractions import Fraction

import gymnasium
import numpy as np
import offpolicy as op
import polars as pl
import pytest
from cli import offpolicy
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit, TransformReward
from offpolicy.policies import FromCallable, TabularPolicy
from offpolicy.simulation.gym import PoolDomain, TableDomain
from offpolicy.testing import check_domain

HORIZON = 30


def exact_value(env_id, pi, horizon, discount, **options):
    """Backward induction over the environment's own table, in rational numbers."""
    env = gymnasium.make(env_id, **options).unwrapped
    v = dict.fromkeys(env.P, Fraction(0))
    for _ in range(horizon):
        v = {
            state: sum(
                pi[state][action]
                * Fraction(p).limit_denominator(9)
                * (Fraction(r) + (0 if ended else discount * v[then]))
                for action, outcomes in row.items()
                for p, then, r, ended in outcomes
            )
            for state, row in env.P.items()
        }
    return float(sum(Fraction(float(p)) * v[state] for state, p in enumerate(env.initial_state_distrib)))


def near(log, domain, truth):
    estimate = op.evaluate(log, discount=domain.discount, horizon=domain.horizon, estimators=["mc"])["mc"]
    assert abs(estimate.value - truth) < 4 * estimate.std_error


CASES = {
    "lake": ("FrozenLake-v1", {}, 0.99),
    "dry lake": ("FrozenLake-v1", {"is_slippery": False}, 0.9),
    "large lake": ("FrozenLake-v1", {"map_name": "8x8"}, 1.0),
    "cliff": ("CliffWalking-v1", {}, 0.95),
    "wet cliff": ("CliffWalking-v1", {"is_slippery": True}, 1.0),
}


@pytest.mark.parametrize("case", CASES)
def test_values_of_the_table_are_exact(case):
    env_id, options, discount = CASES[case]
    domain = op.from_gymnasium(env_id, horizon=HORIZON, discount=discount, **options)
    assert isinstance(domain, TableDomain)
    shares = np.random.default_rng(0).integers(1, 9, size=(domain.grid.cells, domain.actions))
    rational = [[Fraction(int(share), int(row.sum())) for share in row] for row in shares]
    policy = TabularPolicy(shares / shares.sum(axis=1, keepdims=True), domain.grid)
    truth = exact_value(env_id, rational, HORIZON, Fraction(str(discount)), **options)
    assert domain.value(policy) == pytest.approx(truth, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("case", ["lake", "wet cliff"])
def test_a_simulated_mean_is_near_the_exact_value(case):
    env_id, options, discount = CASES[case]
    domain = op.from_gymnasium(env_id, horizon=HORIZON, discount=discount, **options)
    uniform = [[Fraction(1, 4)] * 4] * domain.grid.cells
    truth = exact_value(env_id, uniform, HORIZON, Fraction(str(discount)), **options)
    near(domain.simulate(domain.behavior, 20_000, seed=1), domain, truth)


def test_the_shortest_safe_way_along_the_cliff_takes_thirteen_steps():
    """Up, eleven times right, down: from cell 36 along 24 to 35 to the goal, 47."""
    cliff = op.from_gymnasium("CliffWalking-v1", horizon=100)
    action = np.full(48, 1)
    action[[36, 35]] = 0, 2
    safe = TabularPolicy(np.eye(4)[action], cliff.grid)
    assert cliff.value(safe) == -13
    log = cliff.simulate(safe, 2, seed=0)
    assert log.height == 26
    assert log["terminal"].sum() == 2
    assert log["next_state"][12] == 47


@pytest.mark.parametrize("env_id", ["FrozenLake-v1", "CliffWalking-v1", "Taxi-v4"])
def test_a_table_domain_conforms(env_id):
    check_domain(op.from_gymnasium(env_id, horizon=20))


def test_stepped_copies_and_the_table_have_the_same_value():
    options = {"horizon": HORIZON, "discount": 0.99, "reward_range": (0.0, 1.0)}
    stepped = op.from_gymnasium("FrozenLake-v1", table=False, **options)
    assert isinstance(stepped, PoolDomain)
    table = op.from_gymnasium("FrozenLake-v1", **options)
    assert (stepped.grid, stepped.state_columns, stepped.actions) == (table.grid, table.state_columns, table.actions)
    log = stepped.simulate(stepped.behavior, 4000, seed=2)
    near(log, stepped, table.value(table.behavior))
    assert log.schema == table.simulate(table.behavior, 1, seed=0).schema


def test_cart_pole_moves_as_gymnasium_moves_it():
    pole = op.from_gymnasium("CartPole-v1", horizon=40, reward_range=(0.0, 1.0), copies=7)
    log = pole.simulate(pole.behavior, 20, seed=3)
    env = gymnasium.make("CartPole-v1").unwrapped
    for row in log.iter_rows(named=True):
        env.reset(seed=0)
        env.state = tuple(row[name] for name in pole.state_columns)
        observed, _, terminated, _, _ = env.step(row["action"])
        assert observed == pytest.approx([row[f"next_{name}"] for name in pole.state_columns], abs=1e-6)
        assert terminated == row["terminal"]
    assert log["episode"].n_unique() == 20
    assert op.check(log).ok
    first = log.group_by("episode").first().select(pole.state_columns).to_numpy()
    assert len(np.unique(first, axis=0)) == 20  # every episode has a seed of its own


def test_the_same_seed_gives_the_same_log_and_another_another():
    pole = op.from_gymnasium("CartPole-v1", horizon=20, reward_range=(0.0, 1.0))
    logs = [pole.simulate(pole.behavior, 5, seed) for seed in (1, 1, 2)]
    assert logs[0].equals(logs[1])
    assert not logs[0].equals(logs[2])


def test_an_environment_made_from_its_id_has_no_time_limit_but_the_horizon():
    options = {"is_slippery": False, "table": False, "reward_range": (0.0, 1.0)}
    lake = op.from_gymnasium("FrozenLake-v1", horizon=120, **options)
    left = FromCallable(lambda states, step: np.tile([1.0, 0.0, 0.0, 0.0], (len(states), 1)))
    assert lake.simulate(left, 2, seed=0).height == 240
    assert op.from_gymnasium("FrozenLake-v1", **options).horizon == 100


def test_an_environment_or_a_function_that_makes_one_will_do():
    env = gymnasium.make("CartPole-v1")
    options = {"horizon": 10, "reward_range": (0.0, 1.0)}
    by_id = op.from_gymnasium("CartPole-v1", **options)
    for given in (env, lambda: gymnasium.make("CartPole-v1")):
        domain = op.from_gymnasium(given, **options)
        assert domain.name == "CartPole-v1"
        assert domain.simulate(domain.behavior, 4, 0).equals(by_id.simulate(by_id.behavior, 4, 0))
    assert isinstance(op.from_gymnasium(gymnasium.make("FrozenLake-v1")), TableDomain)
    assert op.from_gymnasium(gymnasium.make("FrozenLake-v1")).horizon == 100


def test_a_wrapper_that_changes_something_is_not_passed_by():
    env = TransformReward(gymnasium.make("FrozenLake-v1"), lambda reward: reward - 1)
    domain = op.from_gymnasium(env, horizon=5, reward_range=(-1.0, 0.0))
    assert isinstance(domain, PoolDomain)
    assert domain.simulate(domain.behavior, 3, 0)["reward"].max() <= 0


def test_what_is_beside_the_table_is_not_forgotten():
    plain, fickle = (
        op.from_gymnasium("Taxi-v4", fickle_passenger=fickle, reward_range=(-10.0, 20.0)) for fickle in (False, True)
    )
    assert (type(plain), type(fickle)) == (TableDomain, PoolDomain)


def test_observations_of_several_parts():
    jack = op.from_gymnasium("Blackjack-v1", horizon=20, reward_range=(-1.5, 1.5))
    assert jack.state_columns == ("state_0", "state_1", "state_2")
    assert jack.grid.size == (32, 11, 2)
    log = jack.simulate(jack.behavior, 50, seed=0)
    assert log["state_0"].dtype == pl.Int64
    jack.grid.index(log.select(jack.state_columns).to_numpy())


class Shop(gymnasium.Env):
    """Two counters, and actions that count from 5; the last one asks for the end."""

    observation_space = spaces.MultiDiscrete([3, 4])
    action_space = spaces.Discrete(2, start=5)

    def reset(self, *, seed=None, options=None):
        self.at = np.array([0, 0])
        return self.at.copy(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.at = np.minimum(self.at + 1, [2, 3])
        return self.at.copy(), float(action), action == 6, False, {}


def test_actions_that_do_not_count_from_zero_do_so_in_the_log():
    shop = op.from_gymnasium(Shop, horizon=9, reward_range=(5.0, 6.0))
    log = shop.simulate(shop.behavior, 30, seed=0)
    assert (log["reward"] == log["action"] + 5).all()
    assert (log["terminal"] == (log["action"] == 1)).all()
    assert shop.grid.size == (3, 4)
    assert shop.name == "Shop"


def test_from_the_command_line(tmp_path):
    out = tmp_path / "lake.parquet"
    run = offpolicy(
        *("simulate", "gymnasium", "--set", "id=FrozenLake-v1", "--set", "horizon=20", "--set", "is_slippery=false"),
        *("--episodes", "50", "--out", out, "--json"),
    )
    assert run.code == 0
    lake = op.from_gymnasium("FrozenLake-v1", horizon=20, is_slippery=False)
    assert pl.read_parquet(out).equals(lake.simulate(lake.behavior, 50, seed=0))
    run = offpolicy(
        *("simulate", "gymnasium", "--set", "id=CartPole-v1", "--set", "horizon=20", "--set", "reward_range=0,1"),
        *("--episodes", "300", "--out", tmp_path / "pole.parquet", "--json"),
    )
    assert (run.code, run.document["episodes"]) == (0, 300)


def test_an_environment_is_named_by_its_id_on_the_command_line(tmp_path):
    run = offpolicy("simulate", "gymnasium", "--set", "env=CartPole-v1", "--out", tmp_path / "pole.parquet")
    assert run.code == 2
    assert "domain 'gymnasium' has no parameter 'env'; did you mean 'id'?" in run.err


REFUSED = {
    "no range of rewards": (("CartPole-v1",), {}, r"give reward_range=\(lowest, highest\)"),
    "continuous actions": (("Pendulum-v1",), {}, "only discrete actions"),
    "no time limit": (("CliffWalking-v1",), {}, "CliffWalking-v1 has no time limit: give horizon="),
    "an unknown id": (("FrozenLak-v1",), {}, "gymnasium cannot make 'FrozenLak-v1'.*FrozenLake"),
    "an unknown option": (("FrozenLake-v1",), {"ice": 3}, "gymnasium cannot make 'FrozenLake-v1'.*ice"),
    "an option for an object": ((Shop,), {"ice": 3}, "ice: only an environment that is named by its id"),
    "something else": ((lambda: 3,), {}, "env must be an id, an environment or a function that makes one"),
    "no table": (("CartPole-v1",), {"table": True}, "CartPole-v1 has no transition table"),
    "no copies": (("CartPole-v1",), {"copies": 0}, "copies must be a whole number of at least 1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    arguments, options, says = REFUSED[case]
    with pytest.raises(op.UsageError, match=says):
        op.from_gymnasium(*arguments, **options)


def test_a_step_from_a_given_state_is_refused_where_the_environment_hides_it():
    pole = op.from_gymnasium("CartPole-v1", horizon=10, reward_range=(0.0, 1.0))
    with pytest.raises(op.OffPolicyError, match=r"CartPole-v1 keeps its state to itself.*simulate\(policy, n, seed\)"):
        pole.reset(3, np.random.default_rng(0))
    with pytest.raises(op.OffPolicyError, match="keeps its state to itself"):
        pole.step(np.zeros((1, 4)), np.zeros(1, dtype=int), np.random.default_rng(0))


def test_an_episode_that_is_cut_before_the_horizon_is_refused():
    stay = FromCallable(lambda states, step: np.tile([1.0, 0.0], (len(states), 1)))
    shop = op.from_gymnasium(lambda: TimeLimit(Shop(), 4), horizon=9, reward_range=(5.0, 6.0))
    with pytest.raises(op.OffPolicyError, match="cut an episode off after 4 steps, before the horizon of 9"):
        shop.simulate(stay, 2, seed=0)
    shop = op.from_gymnasium(lambda: TimeLimit(Shop(), 4), horizon=4, reward_range=(5.0, 6.0))
    assert shop.simulate(stay, 2, seed=0).height == 8


def test_a_reward_outside_its_range_is_refused():
    shop = op.from_gymnasium(Shop, horizon=9, reward_range=(0.0, 5.5))
    with pytest.raises(op.OffPolicyError, match="Shop gave a reward of 6, outside its reward_range"):
        shop.simulate(shop.behavior, 20, seed=0)


def test_an_environment_that_cannot_be_copied_is_refused():
    env = Shop()
    env.handle = (number for number in range(3))
    with pytest.raises(op.UsageError, match=r"cannot be copied.*give a function that makes it"):
        op.from_gymnasium(env, horizon=3, reward_range=(5.0, 6.0))


def test_observations_without_numbers_are_refused():
    class Talker(Shop):
        observation_space = spaces.Text(5)

    with pytest.raises(op.UsageError, match="which are no columns of numbers: wrap it"):
        op.from_gymnasium(Talker, horizon=3, reward_range=(5.0, 6.0))


def test_without_gymnasium_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(op.OffPolicyError, match=r"install the extra 'gymnasium': pip install 'offpolicy\[gymnasium\]'"):
        op.from_gymnasium("FrozenLake-v1")


class Chain(gymnasium.Env):
    """A walk to the right, with ballast; notes how many were made, and how many are open."""

    observation_space = gymnasium.spaces.Discrete(4)
    action_space = gymnasium.spaces.Discrete(2)
    made = opened = 0

    def __init__(self, ballast=0):
        Chain.made += 1
        Chain.opened += 1
        self.ballast = np.zeros(ballast, dtype=np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return self.place, {}

    def step(self, action):
        self.place += int(action == 1 or self.np_random.random() < 0.5)
        return self.place, 1.0, self.place == 3, False, {}

    def close(self):
        Chain.opened -= 1


def chain(ballast=0, **options):
    Chain.made = Chain.opened = 0
    return op.from_gymnasium(lambda: Chain(ballast), horizon=8, reward_range=(0.0, 1.0), name="chain", **options)


def test_environments_are_used_again():
    domain = chain(copies=5)
    log = domain.simulate(domain.behavior, 23, seed=1)
    assert log["episode"].n_unique() == 23
    assert Chain.made == 1 + 5  # one to look at, and those that run together
    assert log.equals(domain.simulate(domain.behavior, 23, seed=1))
    assert Chain.made == 6


def test_environments_used_again_give_the_log_of_new_ones():
    domain = op.from_gymnasium("CartPole-v1", horizon=30, reward_range=(0.0, 1.0), copies=4)
    used = [domain.simulate(domain.behavior, 9, seed=seed) for seed in (1, 2)]
    new = op.from_gymnasium("CartPole-v1", horizon=30, reward_range=(0.0, 1.0), copies=4)
    assert used[1].equals(new.simulate(new.behavior, 9, seed=2))


def test_environments_are_closed_when_nobody_needs_them():
    domain = chain(copies=3)
    domain.simulate(domain.behavior, 7, seed=1)
    assert Chain.opened == 4
    del domain
    gc.collect()
    assert Chain.opened <= 1  # the one that was looked at


def test_large_environments_have_fewer_copies():
    assert chain().copies == 256
    assert chain(ballast=50_000_000).copies == 16
    assert chain(ballast=50_000_000, copies=3).copies == 3
    domain = chain(ballast=200_000_000)
    assert domain.simulate(domain.behavior, 20, seed=0)["episode"].n_unique() == 20
    assert Chain.made <= 5


LEGAL = np.array([[True, True], [False, True], [True, True], [True, True]])


@pytest.mark.parametrize("legal", [LEGAL, lambda states: LEGAL[states[:, 0]]], ids=["array", "function"])
def test_forbidden_actions_are_never_taken(legal):
    domain = chain(copies=8, legal=legal)
    log = domain.simulate(domain.behavior, 200, seed=1)
    assert (log.filter(state=1)["action"] == 1).all()
    assert (log.filter(state=1)["behavior_prob"] == 1.0).all()
    assert log.filter(state=0)["action"].n_unique() == 2
    assert np.array_equal(domain.legal(np.arange(4)[:, None]), LEGAL)


def test_a_table_takes_legal_actions_too():
    legal = np.ones((16, 4), dtype=bool)
    legal[0, 0] = False
    lake = op.from_gymnasium("FrozenLake-v1", horizon=20, legal=legal)
    log = lake.simulate(lake.behavior, 200, seed=1)
    assert not (log.filter(state=0)["action"] == 0).any()
    with pytest.raises(op.UsageError, match=r"legal must be a function, or an array of bool of \(states, 4\)"):
        op.from_gymnasium("FrozenLake-v1", horizon=20, legal=legal[:, :2])
