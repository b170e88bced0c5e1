"""The factored model: counts, least squares and particles against exact references."""

import dataclasses
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from offpolicy.models.fitters import marginals
from offpolicy.models.fitters.factored import Factored
from offpolicy.models.fitters.linear import LeastSquares

ACTIONS, HORIZON = 2, 5
SETTING = op.LoggedDomain(
    state_columns=("time", "coin", "level"), actions=ACTIONS, horizon=HORIZON, reward_range=(-9, 9)
)


def make_log(episodes=120, seed=0, deterministic=False):
    """A clock, a coin that sticks more under action 1, and a level that rises under action 1."""
    rng = np.random.default_rng(seed)
    rows = []
    for episode in range(episodes):
        time, coin, level = 0, 0, 0
        for step in range(HORIZON):
            a = int(rng.integers(2)) if not deterministic else episode >> step & 1
            reward = 0.5 + 2 * coin - level * (1 - a) + 0.25 * level * a
            if deterministic:
                after = (time + 1, (coin + a) % 3, min(level + a, 3))
            else:
                after = (
                    time + 1,
                    int(rng.choice(3, p=[0.2, 0.5, 0.3])) if rng.random() > 0.3 + 0.4 * a else coin,
                    min(level + int(rng.random() < 0.2 + 0.5 * a), 3),
                )
            rows.append((episode, step, time, coin, level, a, reward, False, *after))
            time, coin, level = after
    names = ["episode", "step", "time", "coin", "level", "action", "reward", "terminal"]
    return pl.DataFrame(rows, schema=[*names, "next_time", "next_coin", "next_level"], orient="row")


def by_state(states, step):
    """A policy that depends on the state in no additive way."""
    one = np.where((states[:, 1] == 1) ^ (states[:, 2] > 1), 0.9, 0.2)
    return np.stack([1 - one, one], axis=1)


POLICY = op.policies.FromCallable(by_state)
START = np.array([[0, 0, 0]])


def enumerated(model, policy, discount):
    """V of every step by sums over all next states, each the product of its features' probabilities."""
    values = [list(v) for v in model.marginals.values]
    states = np.array(list(product(*values)))
    place = {tuple(s): i for i, s in enumerate(states)}
    move = np.zeros((len(states), ACTIONS, len(states)))
    for s, a in product(range(len(states)), range(ACTIONS)):
        margins = [model.marginals.probability(i, a, states[s, i]) for i in range(3)]
        for numbers in product(*(range(len(v)) for v in values)):
            chance = np.prod([margin[n] for margin, n in zip(margins, numbers, strict=True)])
            move[s, a, place[tuple(v[n] for v, n in zip(values, numbers, strict=True))]] += chance
    reward = np.stack([model.reward(states, np.full(len(states), a)) for a in range(ACTIONS)], axis=1)
    v = np.zeros(len(states))
    for t in reversed(range(HORIZON)):
        q = reward + discount * move @ v
        v = q.max(axis=1) if policy is None else (policy.probabilities(states, t) * q).sum(axis=1)
    return v[place[0.0, 0.0, 0.0]]


def test_marginals_are_the_counts():
    log = make_log()
    model = Factored().fit(log, SETTING)
    for i, name in enumerate(SETTING.state_columns):
        for (action, value), rows in log.group_by("action", name):
            seen = [Fraction((rows[f"next_{name}"] == y).sum(), rows.height) for y in model.marginals.values[i]]
            np.testing.assert_allclose(
                model.marginals.probability(i, action, value), [float(p) for p in seen], rtol=1e-14
            )


def test_a_value_never_seen_with_an_action_moves_as_under_all_or_stays():
    log = make_log().filter(~((pl.col("action") == 1) & (pl.col("coin") == 2)))
    pooled, stays = (Factored(unseen=how).fit(log, SETTING).marginals for how in ("pool", "stay"))
    others = log.filter(coin=2)["next_coin"]
    expected = [(others == y).mean() for y in range(3)]
    np.testing.assert_allclose(pooled.probability(1, action=1, value=2), expected, rtol=1e-14)
    assert stays.probability(1, action=1, value=2).tolist() == [0, 0, 1]
    for action, value in ((0, 2), (1, 0)):
        same = [marginals.probability(1, action, value).tolist() for marginals in (pooled, stays)]
        assert same[0] == same[1]


def rational_least_squares(x, y):
    """Gauss-Jordan on the normal equations, in fractions."""
    rows = [[Fraction(v) for v in (1, *row)] for row in x]
    k = len(rows[0])
    m = [[sum(r[i] * r[j] for r in rows) for j in range(k)] for i in range(k)]
    b = [sum(r[i] * Fraction(t) for r, t in zip(rows, y, strict=True)) for i in range(k)]
    for i in range(k):
        pivot = next(j for j in range(i, k) if m[j][i] != 0)
        m[i], m[pivot], b[i], b[pivot] = m[pivot], m[i], b[pivot], b[i]
        for j in range(k):
            if j != i:
                ratio = m[j][i] / m[i][i]
                m[j] = [p - ratio * q for p, q in zip(m[j], m[i], strict=True)]
                b[j] -= ratio * b[i]
    return [float(b[i] / m[i][i]) for i in range(k)]


def test_the_reward_is_the_least_squares_of_each_action():
    rng = np.random.default_rng(3)
    states, actions = rng.integers(0, 9, size=(90, 3)), rng.integers(0, 2, size=90)
    rewards = rng.integers(-20, 20, size=90) / 4
    fit = LeastSquares(actions=2, features=(0, 2))
    for part in np.array_split(np.arange(90), 7):
        fit.add(states[part], actions[part], rewards[part])
    theta = fit.reward(state_features=3).theta
    for a in range(2):
        mine = actions == a
        expected = rational_least_squares(states[mine][:, [0, 2]].tolist(), rewards[mine].tolist())
        np.testing.assert_allclose(theta[a, [0, 1, 3]], expected, rtol=1e-12)
    assert (theta[:, 2] == 0).all()


def test_of_equal_fits_the_reward_has_the_least_norm():
    states = np.array([[1, 2], [1, 2], [1, 2]])
    fit = LeastSquares(actions=2, features=(0, 1))
    fit.add(states, np.zeros(3, dtype=int), np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(fit.reward(2).theta, [[2 / 6, 2 / 6, 4 / 6], [0, 0, 0]], atol=1e-14)


def test_particle_values_agree_with_enumeration():
    log = make_log()
    exact = enumerated(Factored().fit(log, SETTING), POLICY, 0.9)
    found = []
    for seed in range(60):
        model = Factored(particles=3, seed=seed).fit(log, SETTING)
        found.append(model.values(POLICY, HORIZON, 0.9).v_hat(START, 0)[0])
    assert np.std(found) > 0
    assert abs(np.mean(found) - exact) < 4 * np.std(found, ddof=1) / np.sqrt(len(found))


def test_many_particles_come_close():
    model = Factored(particles=400).fit(make_log(), SETTING)
    exact = enumerated(model, POLICY, 0.9)
    assert model.values(POLICY, HORIZON, 0.9).v_hat(START, 0)[0] == pytest.approx(exact, rel=0.002)


def test_layers_that_are_cut_short_come_close():
    log = make_log()
    exact = enumerated(Factored().fit(log, SETTING), POLICY, 0.9)
    found = [
        Factored(particles=20, width=8, seed=seed).fit(log, SETTING).values(POLICY, HORIZON, 0.9).v_hat(START, 0)[0]
        for seed in range(20)
    ]
    assert np.mean(found) == pytest.approx(exact, rel=0.01)


def test_deterministic_transitions_are_exact_with_one_particle():
    log = make_log(episodes=32, deterministic=True)
    model = Factored(particles=1).fit(log, SETTING)
    value = model.values(POLICY, HORIZON, 0.9).v_hat(START, 0)[0]
    assert value == pytest.approx(enumerated(model, POLICY, 0.9), rel=1e-12)


def test_a_policy_that_ignores_the_state_is_exact_with_one_particle_and_one_state():
    model = Factored(particles=1, width=1).fit(make_log(), SETTING)
    policy = op.policies.FromCallable(lambda s, t: np.tile([0.7, 0.3] if np.max(t) % 2 else [0.1, 0.9], (len(s), 1)))
    value = model.values(policy, HORIZON, 0.9).v_hat(START, 0)[0]
    assert value == pytest.approx(enumerated(model, policy, 0.9), rel=1e-12)


def test_the_optimal_policy_is_optimal_where_the_model_is_exact():
    model = Factored(particles=1).fit(make_log(episodes=32, deterministic=True), SETTING)
    best, worst = model.optimal_policy(), model.optimal_policy(maximize=False)
    value = {policy: model.values(policy, HORIZON, 1.0).v_hat(START, 0)[0] for policy in (best, worst)}
    assert value[best] == pytest.approx(enumerated(model, None, 1.0), rel=1e-12)
    assert value[worst] < value[best]


def test_v_is_the_mean_of_q_at_every_step():
    model, log = Factored(width=20).fit(make_log(), SETTING), make_log(episodes=9, seed=5)
    values = model.values(POLICY, HORIZON, 0.9)
    states, steps = log.select(SETTING.state_columns).to_numpy(), log["step"].to_numpy()
    q = np.stack([values.q_hat(states, np.full(len(states), a), steps) for a in range(ACTIONS)], axis=1)
    np.testing.assert_allclose(values.v_hat(states, steps), (by_state(states, steps) * q).sum(axis=1), rtol=1e-12)
    last = steps == HORIZON - 1
    np.testing.assert_allclose(q[last, 1], values.r_hat(states[last], np.ones(last.sum(), dtype=int)), rtol=1e-12)


def test_the_start_value_is_the_mean_over_the_first_states():
    log = make_log().filter(pl.col("step") > 0).with_columns(pl.col("step") - 1)  # first states of several kinds
    setting = dataclasses.replace(SETTING, horizon=HORIZON - 1)
    values = Factored(width=6).fit(log, setting).values(POLICY, HORIZON - 1, 0.9)
    first = log.filter(pl.col("step") == 0).select(SETTING.state_columns).to_numpy()
    assert len(np.unique(first, axis=0)) > 3
    assert values.start_value == pytest.approx(np.mean([values.v_hat(s[None], 0)[0] for s in first]), rel=1e-12)


def test_moves_are_counted_alike_in_a_table_and_sorted(monkeypatch):
    rng = np.random.default_rng(8)
    a, count = rng.integers(3, size=200), rng.integers(1, 9, size=200).astype(float)
    x, y = rng.choice([-0.5, 2.0, 7.0], size=(2, 200))
    expected = Counter()
    for *move, times in zip(a, x, y, count, strict=True):
        expected[tuple(move)] += times
    for dense in (0, 4):
        monkeypatch.setattr(marginals, "DENSE", dense)
        *moves, totals = marginals._tally(a, x, y, count)
        found = list(zip(*moves, strict=True))
        assert found == sorted(expected)
        assert [expected[move] for move in found] == totals.tolist()


def test_seeds_decide_and_nothing_else(tmp_path):
    log = make_log()
    log.write_parquet(tmp_path / "log.parquet", row_group_size=37)
    q = [
        Factored(seed=seed).fit(source, SETTING).values(POLICY, HORIZON, 1.0).v_hat(START, 0)[0]
        for seed, source in [(1, log), (1, log), (1, str(tmp_path / "log.parquet")), (2, log)]
    ]
    assert q[0] == q[1] == pytest.approx(q[2], rel=1e-12)
    assert q[0] != q[3]


def test_several_policies_share_layers():
    model = Factored().fit(make_log(), SETTING)
    uniform = op.policies.Uniform(ACTIONS)
    both = model.values_of([POLICY, uniform], HORIZON, 0.9)
    assert both[0].layers is both[1].layers
    assert both[1].v_hat(START, 0)[0] == pytest.approx(enumerated(model, uniform, 0.9), rel=1e-12)


def test_an_episode_that_ends_is_refused():
    log = make_log(episodes=3).with_columns(terminal=pl.col("step") == HORIZON - 1)
    with pytest.raises(op.OffPolicyError, match="episode 0 ends at step 4"):
        Factored().fit(log, SETTING)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"particles": 0}, "particles"),
        ({"width": 0}, "width"),
        ({"seed": -1}, "seed"),
        ({"unseen": "go"}, "unseen"),
        ({"reward_features": ["x"]}, "'x'"),
    ],
)
def test_options_without_a_meaning_are_refused(options, message):
    with pytest.raises(op.OffPolicyError, match=message):
        Factored(**options).fit(make_log(episodes=2), SETTING)


def test_a_step_beyond_the_horizon_is_refused():
    values = Factored().fit(make_log(), SETTING).values(POLICY, HORIZON, 1.0)
    with pytest.raises(op.OffPolicyError, match="from 0 to 4"):
        values.v_hat(START, HORIZON)
