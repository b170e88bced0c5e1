"""Trajectories, synthetic donors and the simulator."""

import math
import pickle
from functools import cache
from itertools import product

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from offpolicy_kdd98 import ACTIONS, FEATURES, Campaigns, Kdd98, synthetic_donors, trajectories


@pytest.fixture(scope="module")
def domain():
    return Kdd98(path="")


def test_a_trajectory_computed_by_hand():
    mailed, gifts = np.zeros((1, 22), dtype=bool), np.zeros((1, 22))
    mailed[0, [0, 2, 3, 5]] = True
    gifts[0, [2, 3, 5]] = [10, 15, 4]
    log = trajectories(Campaigns(mailed, gifts, synthetic=True))
    expected = [  # recency, frequency, mean gift, contact recency and frequency, action, reward
        (0, 0, 0, 0, 0, ACTIONS.index("NK"), 0.0),
        (1, 0, 0, 0, 1, 0, 0.0),
        (2, 0, 0, 1, 1, ACTIONS.index("XK"), 10.0),
        (0, 1, 10, 0, 2, ACTIONS.index("X1"), 15.0),
        (0, 2, 13, 0, 3, 0, 0.0),  # (10 + 15) / 2 = 12.5 goes up
        (1, 2, 13, 1, 3, ACTIONS.index("CC"), 4.0),
        (0, 3, 10, 0, 4, 0, 0.0),  # (13 · 2 + 4) / 3
    ]
    assert log.select(*FEATURES, "action", "reward").rows()[:7] == expected
    assert log.select(f"next_{name}" for name in FEATURES).rows()[:6] == [row[:5] for row in expected[1:]]
    assert log.height == 22
    assert log.row(21, named=True)["next_recency"] == 16


def test_net_rewards_are_less_the_cost_of_each_mailing():
    donors = synthetic_donors(50)
    gross, net = trajectories(donors), trajectories(donors, net=True)
    np.testing.assert_allclose(gross["reward"] - net["reward"], 0.68 * (gross["action"] != 0).to_numpy(), atol=1e-12)


@pytest.mark.parametrize("seed", [1998, 1, 2])
def test_synthetic_donors_have_the_published_totals(seed):
    donors = synthetic_donors(seed=seed)
    assert donors.mailed.shape == (3754, 22)
    assert 1 - donors.mailed.mean() == pytest.approx(0.257, abs=0.005)
    assert (donors.gifts[donors.mailed] > 0).mean() == pytest.approx(0.178, abs=0.005)
    assert donors.gifts[donors.gifts > 0].mean() == pytest.approx(13.55, abs=0.4)
    assert not donors.gifts[~donors.mailed].any()
    assert donors.synthetic


def test_the_simulator_moves_by_the_counts_of_the_trajectories(domain):
    rng, n = np.random.default_rng(0), 40_000
    state, action = np.array([2, 1, 12, 0, 5]), ACTIONS.index("NK")
    after, _, done = domain.step(np.tile(state, (n, 1)), np.full(n, action), rng)
    assert not done.any()
    for i, name in enumerate(FEATURES):
        rows = domain.trajectories.filter(pl.col("action") == action, pl.col(name) == state[i])
        for value, share in rows[f"next_{name}"].value_counts(normalize=True).rows():
            assert (after[:, i] == value).mean() == pytest.approx(
                share, abs=4 * np.sqrt(share * (1 - share) / n) + 1e-9
            )


def test_the_reward_is_linear_in_all_five_features(domain):
    rows = domain.trajectories.filter(pl.col("action") == 5)
    x = np.column_stack([np.ones(rows.height), rows.select(FEATURES).to_numpy()])
    theta, *_ = np.linalg.lstsq(x, rows["reward"].to_numpy(), rcond=None)
    states = np.array([[3, 2, 11, 0, 7], [0, 0, 0, 0, 0]])
    _, rewards, _ = domain.step(states, np.array([5, 5]), np.random.default_rng(0))
    np.testing.assert_allclose(rewards, theta[0] + states @ theta[1:], rtol=1e-9)


def test_a_log_of_the_behaviour(domain):
    log = domain.simulate(domain.behavior, n=300, seed=3)
    assert log.height == 300 * 22
    assert log["behavior_prob"].unique().to_list() == [1 / 12]
    assert log.equals(domain.simulate(domain.behavior, n=300, seed=3))
    assert log["reward"].is_between(*domain.reward_range).all()
    assert not log["terminal"].any()
    assert (log.filter(step=0).select(FEATURES).to_numpy() == 0).all()


def test_residual_noise_keeps_the_mean(domain):
    noisy, n = Kdd98(path="", noise="residual"), 60_000
    states, actions = np.tile([0, 1, 12, 0, 5], (n, 1)), np.full(n, 5)
    _, mean, _ = domain.step(states[:1], actions[:1], np.random.default_rng(0))
    _, rewards, _ = noisy.step(states, actions, np.random.default_rng(0))
    assert rewards.mean() == pytest.approx(mean[0], abs=4 * rewards.std() / np.sqrt(n))
    assert rewards.std() > 1
    low, high = noisy.reward_range
    assert low <= rewards.min() <= rewards.max() <= high


def test_the_evaluation_model_agrees_with_roll_outs(domain):
    model = domain.evaluation_fitter.fit(domain.simulate(domain.behavior, n=3754, seed=5), domain)
    assert (model.reward.theta[:, 4:] == 0).all()
    policy = op.policies.FromCallable(mail_the_lapsed)
    rewards = domain.simulate(policy, n=20_000, seed=6).group_by("episode").agg(pl.col("reward").sum())["reward"]
    value = model.values(policy, domain.horizon, 1.0).v_hat(domain.reset(1, None), 0)[0]
    assert value == pytest.approx(rewards.mean(), rel=0.05)


def mail_the_lapsed(states, step):
    """Mails GK to those who gave lately, XK to the others."""
    pi = np.zeros((len(states), len(ACTIONS)))
    pi[np.arange(len(states)), np.where(states[:, 0] < 3, ACTIONS.index("GK"), ACTIONS.index("XK"))] = 1
    return pi


@pytest.mark.slow
def test_the_trained_policy_beats_the_behaviour(domain):
    trained = domain.policies["trained"]()
    total = pl.col("reward").sum()
    ours, theirs = (
        domain.simulate(policy, n=2000, seed=1).group_by("episode").agg(total)["reward"]
        for policy in (trained, domain.behavior)
    )
    error = np.sqrt((ours.var() + theirs.var()) / 2000)
    assert ours.mean() > theirs.mean() + 4 * error


def test_it_travels_as_its_options(domain):
    assert domain.model  # which cannot travel
    parcel = pickle.dumps(domain)
    assert len(parcel) < 1000
    there = pickle.loads(parcel)
    assert there == domain
    assert there.simulate(there.behavior, n=5, seed=1).equals(domain.simulate(domain.behavior, n=5, seed=1))


def test_the_domain_is_found_by_name_and_plots(domain):
    assert op.domain("kdd98", donors=20, path="").donors == 20
    log = domain.simulate(domain.behavior, n=3, seed=0)
    drawn = domain.plot(log, 1).to_dict()
    assert "synthetic donors" in drawn["title"]["subtitle"]
    with pytest.raises(op.OffPolicyError, match="no episode 9"):
        domain.plot(log, 9)


@pytest.mark.parametrize("options", [{"donors": 0}, {"noise": "loud"}])
def test_options_without_a_meaning_are_refused(options):
    with pytest.raises(op.OffPolicyError, match=next(iter(options))):
        Kdd98(**options)


def table_of(marginals):
    """P_i(y|x, a) of single moves, from the expectations of the core."""

    @cache
    def rows(feature, action, value):
        return dict(zip(marginals.values[feature], marginals.probability(feature, action, value), strict=True))

    return lambda feature, action, x, y: rows(feature, action, x).get(y, 0.0)


def test_transition_ratios_are_the_products_of_both_tables():
    domain = op.domain("kdd98", path="", donors=300)
    log = domain.simulate(domain.behavior, 120, seed=3)
    train, test = log.filter(pl.col("episode") < 80), log.filter(pl.col("episode") >= 80)
    model = domain.evaluation_fitter.fit(train, domain)
    values = model.values(domain.behavior, domain.horizon, domain.discount)
    annotated = op.annotate(test, domain.behavior, values, op.Columns.of(domain), domain=domain)
    true, fitted = table_of(domain.model.marginals), table_of(model.marginals)
    seen = [set(train.select("action", name).iter_rows()) for name in FEATURES]
    known = 0
    for row in annotated.iter_rows(named=True):
        moves = [(i, row["action"], row[name], row[f"next_{name}"]) for i, name in enumerate(FEATURES)]
        if all((a, x) in seen[i] for i, a, x, _ in moves):
            expected = math.prod(fitted(*move) for move in moves) / math.prod(true(*move) for move in moves)
            known += 1
        else:
            expected = 0.0
            assert row["r_hat"] == row["q_hat"]
        assert row["transition_ratio"] == pytest.approx(expected, rel=1e-12, abs=1e-300)
    assert known > 500
    assert known < annotated.height


def test_the_probabilities_of_all_next_states_add_to_one():
    domain = op.domain("kdd98", path="", donors=300)
    marginals, start = domain.model.marginals, np.zeros(len(FEATURES))
    for action in range(0, domain.actions, 5):
        possible = [values[marginals.probability(i, action, start[i]) > 0] for i, values in enumerate(marginals.values)]
        following = np.array(list(product(*possible)))
        n = len(following)
        p = domain.transition_probability(np.tile(start, (n, 1)), np.full(n, action), following)
        assert p.sum() == pytest.approx(1, abs=1e-12)
        assert (p > 0).all()
        assert (domain.transition_probability(np.tile(start, (n, 1)), np.full(n, action), following + 0.5) == 0).all()


def test_cross_fit_has_the_ratio_and_tells_of_the_particles():
    domain = op.domain("kdd98", path="", donors=200)
    log = domain.simulate(domain.behavior, 60, seed=1)
    cf = op.cross_fit(log, domain, policy=domain.behavior, fitter=domain.evaluation_fitter, estimators=["dr-v2"])
    (note,) = (note for note in cf.notes if "P̂/P" in note)
    assert note.startswith("dr-v2 has P̂/P of every transition, with P of domain 'kdd98'")
    assert note.endswith("V̂ comes from particles, whose error is left as a bias of dr-v2")
