"""Fitted Q evaluation, against dynamic programming of the empirical model."""

import os
import sys
from dataclasses import replace
from typing import ClassVar

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from offpolicy.models.fitters import q_function
from offpolicy.models.fitters.fqe import Fqe
from offpolicy.models.fitters.openmp import worthwhile
from offpolicy.policies import FromCallable, Uniform
from offpolicy.testing import Walk, check_fitter
from offpolicy.testing.walk import PLACES, START
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor

WALK = Walk()
LOG = WALK.simulate(WALK.behavior, 400, seed=0)
TREE = DecisionTreeRegressor(random_state=0)  # without a limit: a leaf for every state and action
LEGAL = WALK.legal(np.arange(PLACES)[:, None])
INNER = slice(1, PLACES - 1)
POLICIES = {"behavior": WALK.behavior, "eager": WALK.policies["eager"]}


def empirical(log):
    """P̂ and R̂ of a log with next states, row by row; going to an end leads nowhere."""
    n, rewards = np.zeros((PLACES, 3)), np.zeros((PLACES, 3))
    moves = np.zeros((PLACES, 3, PLACES))
    for row in log.iter_rows(named=True):
        s, a = row["place"], row["action"]
        n[s, a] += 1
        rewards[s, a] += row["reward"]
        moves[s, a, row["next_place"]] += not row["terminal"]
    seen = np.maximum(n, 1)
    assert (n[INNER] > 0).sum() == LEGAL[INNER].sum()
    return moves / seen[:, :, None], rewards / seen


def backwards(log, horizon, discount, value):
    """Q of 1, 2, … steps to go; `value(q, h)` is V of the states that are left, from Q of h - 1."""
    moves, rewards = empirical(log)
    found = [rewards]
    for h in range(2, horizon + 1):
        found.append(rewards + discount * moves @ value(found[-1], h))
    return np.array(found)


def pairs():
    states, actions = np.nonzero(LEGAL[INNER])
    return states[:, None] + 1, actions


def of_policy(policy, horizon):
    places = np.arange(PLACES)[:, None]
    return lambda q, h: (policy.probabilities(places, horizon - h + 1) * q).sum(axis=1)


@pytest.mark.parametrize("actions", ["one-hot", "separate"])
@pytest.mark.parametrize("name", POLICIES)
def test_exact_regressions_are_dynamic_programming_of_the_empirical_model(name, actions):
    policy = POLICIES[name]
    values = Fqe(TREE, actions=actions).fit(LOG, WALK).values(policy, WALK.horizon, WALK.discount)
    q = backwards(LOG, WALK.horizon, WALK.discount, of_policy(policy, WALK.horizon))
    states, chosen = pairs()
    for step in range(WALK.horizon):
        table = q[WALK.horizon - step - 1]
        assert values.q_hat(states, chosen, step) == pytest.approx(table[states[:, 0], chosen], abs=1e-9)
        v = (policy.probabilities(states, step) * table[states[:, 0]]).sum(axis=1)
        assert values.v_hat(states, step) == pytest.approx(v, abs=1e-9)
    assert values.r_hat(states, chosen) == pytest.approx(q[0][states[:, 0], chosen], abs=1e-9)


def test_another_horizon_and_discount_than_the_domains():
    values = Fqe(TREE).fit(LOG, WALK).values(WALK.behavior, 3, 0.5)
    q = backwards(LOG, 3, 0.5, of_policy(WALK.behavior, 3))
    states, chosen = pairs()
    assert values.q_hat(states, chosen, 0) == pytest.approx(q[2][states[:, 0], chosen], abs=1e-9)
    with pytest.raises(op.OffPolicyError, match="the values are of steps 0 to 2, not 3 to 3"):
        values.q_hat(states, chosen, 3)


def test_a_stationary_q_is_that_of_its_iterations_at_every_step():
    values = Fqe(TREE, stationary=True, iterations=5).fit(LOG, WALK).values(WALK.behavior, 12, 0.95)
    q = backwards(LOG, 5, 0.95, of_policy(WALK.behavior, 5))
    states, chosen = pairs()
    for step in (0, 11):
        assert values.q_hat(states, chosen, step) == pytest.approx(q[-1][states[:, 0], chosen], abs=1e-9)


@pytest.mark.parametrize("maximize", [True, False])
def test_the_optimal_policy_is_greedy_on_fitted_q_iteration_and_legal(maximize):
    sign = 1 if maximize else -1
    best = lambda q, h: sign * np.where(LEGAL, sign * q, -np.inf).max(axis=1)  # noqa: E731
    q = backwards(LOG, WALK.horizon, WALK.discount, best)[-1]
    greedy = np.where(LEGAL, sign * q, -np.inf).argmax(axis=1)
    states = np.arange(1, PLACES - 1)[:, None]
    pi = Fqe(TREE).fit(LOG, WALK).optimal_policy(maximize).probabilities(states, 0)
    assert pi.argmax(axis=1).tolist() == greedy[INNER].tolist()
    assert not pi[~LEGAL[INNER]].any()


def test_what_is_forbidden_in_the_next_state_is_no_reason_to_go_there():
    """From 0 one may take 3 or go on to 3, where 10 would beckon, as in 2, but is forbidden, and 1 is all there is."""

    class Fenced(op.LoggedDomain):
        def legal(self, states):
            return np.stack([np.ones(len(states), dtype=bool), states[:, 0] != 3], axis=1)

    log = pl.DataFrame(
        {
            "episode": [0, 0, 1, 2],
            "step": [0, 1, 0, 0],
            "state": [0, 3, 0, 2],
            "action": [0, 0, 1, 1],
            "reward": [0.0, 1.0, 3.0, 10.0],
            "terminal": [False, True, True, True],
        }
    )
    domain = Fenced(state_columns=("state",), actions=2, horizon=2, reward_range=(0.0, 10.0))
    policy = Fqe(TREE, actions="separate").fit(log, domain).optimal_policy()
    assert policy.probabilities(np.array([[0], [3]]), 0).tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_the_best_policy_earns_more_than_the_worst():
    model = Fqe(TREE).fit(LOG, WALK)
    best, worst = (WALK.exact_values(model.optimal_policy(maximize))[1][0, START] for maximize in (True, False))
    assert best > WALK.exact_values(WALK.behavior)[1][0, START] > worst


def test_nobody_is_asked_what_to_do_where_an_episode_has_ended():
    def alive(states, step):
        assert ((states > 0) & (states < PLACES - 1)).all()
        return WALK.behavior.probabilities(states, step)

    values = Fqe(TREE).fit(LOG, WALK).values(FromCallable(alive), WALK.horizon, WALK.discount)
    same = Fqe(TREE).fit(LOG, WALK).values(WALK.behavior, WALK.horizon, WALK.discount)
    states, chosen = pairs()
    assert (values.q_hat(states, chosen, 0) == same.q_hat(states, chosen, 0)).all()


def test_a_step_whose_next_state_is_not_known_tells_its_reward_alone():
    log = pl.DataFrame(
        {"episode": [0, 0, 1], "step": [0, 1, 0], "state": [0, 1, 0], "action": 0, "reward": [1.0, 2.0, 4.0]}
    ).with_columns(terminal=pl.Series([False, True, False]))
    domain = op.LoggedDomain(state_columns=("state",), actions=1, horizon=2, reward_range=(0.0, 4.0))
    values = Fqe(TREE).fit(log, domain).values(Uniform(1), 2, 1.0)
    states = np.array([[0], [1]])
    assert values.r_hat(states, np.zeros(2, dtype=int)).tolist() == [2.5, 2.0]  # both rewards of state 0
    assert values.q_hat(states, np.zeros(2, dtype=int), 0).tolist() == [3.0, 2.0]  # only the transition that is known


def test_an_action_that_is_never_seen_is_worth_the_least_where_each_has_a_regressor():
    left = LOG.filter(pl.col("action") != 1)
    values = Fqe(TREE, actions="separate").fit(left, WALK).values(WALK.behavior, 3, 0.5)
    q = values.q_hat(np.array([[2], [3]]), np.array([1, 1]), 0)
    assert q == pytest.approx([-0.05 * 1.75] * 2)


def test_gradient_boosting_by_default():
    walk = replace(WALK, horizon=4)
    log = WALK.simulate(WALK.behavior, 300, seed=1)  # longer episodes than the horizon tell more
    policy = walk.policies["eager"]
    values = op.fitter("fqe").fit(log, walk).values(policy, walk.horizon, walk.discount)
    truth = walk.exact_values(policy)[1][0, INNER]
    assert truth[-1] - truth[0] > 0.7
    assert values.v_hat(np.arange(PLACES)[INNER, None], 0) == pytest.approx(truth, abs=0.1)


@pytest.mark.parametrize("actions", ["one-hot", "separate"])
def test_it_conforms(actions):
    check_fitter(Fqe(TREE, actions=actions), episodes=300)


def test_it_conforms_with_gradient_boosting():
    fitter = Fqe(HistGradientBoostingRegressor(max_iter=5, learning_rate=0.5, random_state=0))
    check_fitter(fitter, replace(WALK, horizon=2), episodes=100)


def test_any_object_with_fit_and_predict_will_do():
    class Mean:
        def fit(self, features, targets):
            self.mean = targets.mean()  # and returns nothing

        def predict(self, features):
            return np.full(len(features), self.mean)

    values = Fqe(Mean()).fit(LOG, WALK).values(WALK.behavior, 1, 1.0)
    assert values.q_hat(np.array([[3]]), np.array([0]), 0)[0] == pytest.approx(LOG["reward"].mean())


def test_the_given_regressor_is_not_touched():
    regressor = DecisionTreeRegressor(random_state=0)
    Fqe(regressor).fit(LOG, WALK).values(WALK.behavior, 2, 1.0)
    assert not hasattr(regressor, "tree_")


def test_doubly_robust_estimates_of_a_log_that_it_annotates():
    train, test = (WALK.simulate(WALK.behavior, 400, seed) for seed in (5, 6))
    policy = WALK.policies["eager"]
    values = Fqe(TREE).fit(train, WALK).values(policy, WALK.horizon, WALK.discount)
    states, actions, steps = test.select("place").to_numpy(), test["action"].to_numpy(), test["step"].to_numpy()
    log = test.with_columns(
        target_prob=policy.probabilities(states, steps)[np.arange(len(actions)), actions],
        q_hat=values.q_hat(states, actions, steps),
        v_hat=values.v_hat(states, steps),
    )
    ev = op.evaluate(log, discount=WALK.discount, horizon=WALK.horizon, estimators=["step-is", "dr"])
    truth = WALK.exact_values(policy)[1][0, START]
    assert abs(ev["dr"].value - truth) < 4 * ev["dr"].std_error
    assert ev["dr"].std_error < 0.7 * ev["step-is"].std_error


REFUSED = {
    "actions": ({"actions": "two-hot"}, "actions must be one of 'one-hot', 'separate', not 'two-hot'"),
    "iterations": ({"iterations": 0}, "iterations must be a whole number of at least 1, not 0"),
    "a regressor": ({"regressor": 3}, "a regressor has fit and predict, and this int has not"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    options, says = REFUSED[case]
    with pytest.raises(op.UsageError, match=says):
        Fqe(**options)


def test_an_empty_log_is_refused():
    with pytest.raises(op.OffPolicyError, match="the log has no step"):
        Fqe(TREE).fit(LOG.head(0), WALK)


def test_a_log_that_tells_no_transition_is_refused():
    log = LOG.group_by("episode", maintain_order=True).first().drop("next_place")
    model = Fqe(TREE).fit(log, WALK)
    with pytest.raises(op.OffPolicyError, match="no step of the log tells where it led"):
        model.values(WALK.behavior, 2, 1.0)
    assert model.values(WALK.behavior, 1, 1.0).v_hat(np.array([[START]]), 0).shape == (1,)


def test_a_prediction_that_is_no_number_is_refused():
    class Broken(DecisionTreeRegressor):
        def predict(self, features):
            return np.full(len(features), np.nan)

    values = Fqe(Broken()).fit(LOG, WALK).values(WALK.behavior, 1, 1.0)
    with pytest.raises(op.OffPolicyError, match="Broken predicted"):
        values.v_hat(np.array([[3]]), 0)


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(op.OffPolicyError, match=r"pip install 'offpolicy\[learn\]'"):
        Fqe().fit(LOG, WALK)


class Recorder:
    """A regressor that notes the rows it is asked for, and how many OpenMP threads it has."""

    asked: ClassVar[list] = []
    threads: ClassVar[list] = []

    def note(self):
        import sklearn.ensemble  # loads OpenMP
        from threadpoolctl import threadpool_info

        assert sklearn.ensemble
        Recorder.threads += [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "openmp"]

    def fit(self, features, targets):
        self.note()
        self.weights = np.arange(1.0, features.shape[1] + 1)
        return self

    def predict(self, features):
        self.note()
        Recorder.asked.append(len(features))
        assert len(np.unique(features, axis=0)) == len(features)
        return (features * self.weights).sum(axis=1)


@pytest.mark.parametrize("kind", ["one-hot", "separate"])
def test_a_pair_of_state_and_action_is_predicted_once(kind):
    Recorder.asked.clear()
    log = WALK.simulate(WALK.behavior, 200, seed=1)
    values = op.fitter("fqe", regressor=Recorder(), actions=kind).fit(log, WALK).values(WALK.behavior, 12, 0.9)
    fitting = sum(Recorder.asked)
    inner = log["next_place"].filter(~log["terminal"]).n_unique()
    assert fitting == 11 * 3 * inner  # regressions after the first x actions x places where an episode goes on
    states, actions = log[["place"]].to_numpy(), log["action"].to_numpy()
    one_by_one = [values.q_hat(states[i : i + 1], actions[i : i + 1], 0)[0] for i in range(50)]
    assert np.array_equal(values.q_hat(states[:50], actions[:50], 0), one_by_one)
    assert np.array_equal(values.v_hat(states[:50], 0), [values.v_hat(states[i : i + 1], 0)[0] for i in range(50)])


def test_openmp_gets_as_many_threads_as_there_is_work_for():
    from threadpoolctl import threadpool_limits

    Recorder.threads.clear()
    log = WALK.simulate(WALK.behavior, 20, seed=1)
    with threadpool_limits(limits=8, user_api="openmp"):
        op.fitter("fqe", regressor=Recorder()).fit(log, WALK).values(WALK.behavior, 3, 0.9)
    assert set(Recorder.threads) == {1}


def test_many_rows_get_the_processors_that_are_ours():
    assert worthwhile(10) == worthwhile(10_000) == 1
    assert worthwhile(10**9) == len(os.sched_getaffinity(0))


def test_large_questions_come_in_batches_and_give_the_same_bits(monkeypatch):
    log = WALK.simulate(WALK.behavior, 100, seed=1)
    model = op.fitter("fqe", regressor=DecisionTreeRegressor(random_state=0)).fit(log, WALK)
    whole = model.values(WALK.behavior, 4, 0.9).v_hat(log[["place"]].to_numpy(), 0)
    monkeypatch.setattr(q_function, "BATCH_ROWS", 4)
    assert np.array_equal(model.values(WALK.behavior, 4, 0.9).v_hat(log[["place"]].to_numpy(), 0), whole)
