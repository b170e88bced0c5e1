"""Values, variances and biases of `offpolicy.theory` against complete enumeration in rational arithmetic."""

from fractions import Fraction

import numpy as np
import offpolicy as op
import paths
import polars as pl
import pytest
import reference
from offpolicy import theory

SEEDS = range(8)


def problem(seed, **options):
    process = paths.random_process(seed, **options)
    return process, process.mdp(), *paths.random_policies(seed)


def plain(values):
    return np.asarray(values, dtype=float)


def in_floats(mdp):
    rewards = theory.Rewards(plain(mdp.reward_mean), plain(mdp.reward_variance))
    ends = np.flatnonzero(mdp.terminal)
    return theory.MDP(plain(mdp.transitions), rewards, plain(mdp.initial), mdp.horizon, float(mdp.discount), ends)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_value_is_that_of_all_paths(seed):
    process, mdp, behavior, target = problem(seed)
    assert theory.value(mdp, target) == process.value(target)
    assert theory.value(mdp, behavior) == process.value(behavior)


@pytest.mark.parametrize("seed", SEEDS)
def test_dr_has_the_variance_of_theorem_1_for_any_q_hat(seed):
    process, mdp, behavior, target = problem(seed)
    for q_hat in (paths.random_q(seed), theory.q_values(mdp, target)):
        mean, variance = paths.moments(process, behavior, target, "dr", q_hat)
        assert mean == theory.value(mdp, target)
        assert theory.dr_variance(mdp, behavior, target, q_hat) == variance


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("estimator", ["is", "step-is"])
def test_importance_sampling_has_its_variance(seed, estimator):
    process, mdp, behavior, target = problem(seed)
    exact = {"is": theory.is_variance, "step-is": theory.step_is_variance}[estimator]
    assert exact(mdp, behavior, target) == paths.moments(process, behavior, target, estimator)[1]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("estimator", ["wis", "step-wis"])
def test_weighted_importance_sampling_has_the_variance_of_its_influence(seed, estimator):
    process, mdp, behavior, target = problem(seed)
    asymptotic = {"wis": theory.wis_variance, "step-wis": theory.step_wis_variance}[estimator]
    expected = paths.influence_variance(process, behavior, target, estimator)
    assert asymptotic(mdp, behavior, target) == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_weighted_doubly_robust_has_the_variance_of_its_influence(seed):
    process, mdp, behavior, target = problem(seed)
    assert mdp.terminal.any()
    for q_hat in (paths.random_q(seed), theory.q_values(mdp, target), np.zeros((3, 3, 2), dtype=int)):
        expected = paths.influence_variance(process, behavior, target, "wdr", q_hat)
        assert theory.wdr_variance(mdp, behavior, target, q_hat) == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_weighted_doubly_robust_is_step_wis_without_a_model_and_dr_with_the_true_one(seed):
    _, mdp, behavior, target = problem(seed)
    pair, q = (mdp, behavior, target), theory.q_values(mdp, target)
    assert theory.wdr_variance(*pair, np.zeros((3, 2))) == theory.step_wis_variance(*pair)
    assert theory.wdr_variance(*pair, q) == theory.dr_variance(*pair, q)


@pytest.mark.parametrize("seed", SEEDS)
def test_weighted_doubly_robust_makes_up_for_a_constant_of_each_step(seed):
    _, mdp, behavior, target = problem(seed, terminal=False)
    pair, q = (mdp, behavior, target), theory.q_values(mdp, target)
    off = np.array([Fraction(5), Fraction(-2), Fraction(3)])[:, None, None]
    assert theory.wdr_variance(*pair, q + off) == theory.dr_variance(*pair, q)


@pytest.mark.parametrize("seed", SEEDS)
def test_dr_with_a_baseline_has_its_variance(seed):
    process, mdp, behavior, target = problem(seed)
    for c in (Fraction(3, 4), Fraction(-2)):
        mean, variance = paths.moments(process, behavior, target, "dr-bsl", baseline=c)
        assert mean == theory.value(mdp, target)
        assert theory.dr_bsl_variance(mdp, behavior, target, c) == variance


def test_what_is_said_of_q_hat_in_a_terminal_state_is_not_looked_at():
    _, mdp, behavior, target = problem(1)
    q_hat = paths.random_q(1)
    other = q_hat.copy()
    other[:, mdp.terminal] = Fraction(9)
    for variance in (theory.dr_variance, theory.wdr_variance):
        assert variance(mdp, behavior, target, q_hat) == variance(mdp, behavior, target, other)


def test_a_reward_that_depends_on_the_next_state_brings_its_covariance():
    """s' = 1 with probability ½, and r = V(s') or -V(s'): both have the same Var(r) and Var(V(s'))."""
    half = Fraction(1, 2)
    rows = [[[half, half]], [[0, 1]]]
    found = {}
    for sign in (1, -1):
        rewards = np.full((2, 2, 1, 2), Fraction(0))
        rewards[0, 0, 0, 1], rewards[1, 1] = Fraction(sign), Fraction(1)
        mdp = theory.MDP(rows, rewards, [1, 0], horizon=2)
        found[sign] = theory.dr_variance(mdp, [[1], [1]], [[1], [1]], np.zeros((2, 1)))
    assert found == {1: Fraction(1), -1: Fraction(0)}  # without the covariance ½ in both


@pytest.mark.parametrize("seed", SEEDS)
def test_dr_v2_has_its_bias_and_stays_within_proposition_1(seed):
    process, mdp, behavior, target = problem(seed)
    wrong = paths.random_process(100 + seed).mdp()
    p_hat, r_hat = wrong.transitions, theory.Rewards(wrong.reward_mean)
    model = mdp.model(p_hat, r_hat)
    q_hat = theory.q_values(model, target)
    mean_reward = (model.transitions * model.reward_mean).sum(axis=-1)
    mean, _ = paths.moments(process, behavior, target, "dr-v2", q_hat, mean_reward)
    bias = theory.dr_v2_bias(mdp, target, p_hat, r_hat)
    assert bias == mean - process.value(target)
    assert 0 < abs(bias) <= theory.dr_v2_bias_bound(mdp, target, p_hat, r_hat)
    assert theory.dr_v2_bias(mdp, target, mdp.transitions, r_hat) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_missing_support_loses_weight_and_biases_step_is(seed):
    process, mdp, behavior, target = problem(seed)
    for t, s in np.ndindex(3, 3):
        if (seed + t + s) % 3 == 0:
            behavior[t, s] = [Fraction(0), Fraction(1)]
    log = [(p, paths.annotated(steps, behavior, target)) for p, steps in process.paths(behavior)]
    weights = [(p, reference.cumulative_ratios(reference.absorbed([steps], 3)[0])) for p, steps in log]
    lost = [1 - sum(p * c[t + 1] for p, c in weights) for t in range(3)]
    assert theory.missing_support(mdp, behavior, target).tolist() == lost
    assert lost == sorted(lost)
    mean, _ = paths.moments(process, behavior, target, "step-is")
    bias = theory.step_is_bias(mdp, behavior, target)
    assert bias == mean - process.value(target)
    largest = max(abs(mdp.reward_mean).ravel())
    bound = theory.step_is_bias_bound(mdp, behavior, target)
    assert abs(bias) <= bound == sum(process.discount**t * lost[t] for t in range(3)) * largest


def test_proposition_1_is_its_formula():
    mdp = theory.MDP([[[1.0, 0.0]], [[0.0, 1.0]]], [[1.0], [2.0]], [1.0, 0.0], horizon=3, discount=0.5)
    bound = theory.dr_v2_bias_bound(mdp, [[1.0], [1.0]], [[[0.75, 0.25]], [[0.0, 1.0]]], [[1.0], [-2.0]])
    epsilon, v_max, steps = 0.5, 3.5, 0.5 + 0.25 + 0.125
    assert bound == epsilon * v_max * steps


@pytest.mark.parametrize("seed", SEEDS)
def test_floats_are_as_good_as_rationals(seed):
    _, exact, behavior, target = problem(seed)
    mdp, q_hat = in_floats(exact), paths.random_q(seed)
    pair, float_pair = (behavior, target), (plain(behavior), plain(target))
    calls = [
        (theory.value, (target,), (plain(target),)),
        (theory.dr_variance, (*pair, q_hat), (*float_pair, plain(q_hat))),
        *((each, pair, float_pair) for each in (theory.is_variance, theory.step_is_variance)),
        *((each, pair, float_pair) for each in (theory.wis_variance, theory.step_wis_variance)),
        (theory.wdr_variance, (*pair, q_hat), (*float_pair, plain(q_hat))),
        (theory.dr_bsl_variance, (*pair, Fraction(1, 3)), (*float_pair, 1 / 3)),
    ]
    for function, rational, rounded in calls:
        result = function(mdp, *rounded)
        assert type(result) is float
        assert type(function(exact, *rational)) is Fraction
        assert result == pytest.approx(float(function(exact, *rational)), rel=1e-12, abs=1e-14)


def test_one_fraction_makes_everything_exact():
    mdp = theory.MDP([[[1], [1]]], [[0.0, 0.5]], [1.0], horizon=2, discount=Fraction(1, 3))
    assert theory.value(mdp, [[0.25, 0.75]]) == Fraction(1, 2)


def test_steps_given_one_by_one_are_the_same_as_once_for_all():
    rng = np.random.default_rng(0)
    p, r = rng.dirichlet(np.ones(3), size=(3, 2)), rng.normal(size=(3, 2))
    behavior, target = rng.dirichlet(np.ones(2), size=3), rng.dirichlet(np.ones(2), size=3)
    once = theory.MDP(p, r, [0.2, 0.3, 0.5], horizon=4, discount=0.9)
    each = theory.MDP(np.tile(p, (4, 1, 1, 1)), np.tile(r, (4, 1, 1)), [0.2, 0.3, 0.5], horizon=4, discount=0.9)
    given = np.tile(behavior, (4, 1, 1)), np.tile(target, (4, 1, 1))
    assert theory.step_wis_variance(once, behavior, target) == theory.step_wis_variance(each, *given)
    to_next = theory.MDP(p, np.repeat(r[:, :, None], 3, axis=2), [0.2, 0.3, 0.5], horizon=4, discount=0.9)
    assert theory.dr_variance(once, behavior, target, r) == theory.dr_variance(to_next, *given, np.tile(r, (4, 1, 1)))


def test_the_same_policies_make_importance_sampling_the_variance_of_the_return():
    process, mdp, behavior, _ = problem(3)
    spread = sum(p * (process.discounted(steps) - process.value(behavior)) ** 2 for p, steps in process.paths(behavior))
    for variance in (theory.is_variance, theory.step_is_variance, theory.wis_variance, theory.step_wis_variance):
        assert variance(mdp, behavior, behavior) == spread


def test_a_long_horizon_needs_no_enumeration():
    mdp = theory.MDP([[[1.0], [1.0]]], [[0.0, 1.0]], [1.0], horizon=200, discount=0.99)
    behavior, target = [[0.5, 0.5]], [[0.45, 0.55]]
    assert theory.dr_variance(mdp, behavior, target, theory.q_values(mdp, target)) == pytest.approx(0, abs=1e-9)
    assert theory.step_wis_variance(mdp, behavior, target) < theory.step_is_variance(mdp, behavior, target)


def test_what_no_float_holds_is_refused_and_fractions_hold_it():
    rows, rewards = [[[1], [1]]], theory.Rewards([[1, 1]], [[2, 2]])
    behavior, target = [[Fraction(1, 10), Fraction(9, 10)]], [[1, 0]]
    mdp, exact = (theory.MDP(rows, rewards, [one], horizon=400) for one in (1.0, Fraction(1)))
    for function in (theory.is_variance, theory.step_is_variance, theory.wis_variance, theory.step_wis_variance):
        with pytest.raises(op.OffPolicyError, match="beyond the range of floats"):
            function(mdp, plain(behavior), target)
        assert function(exact, behavior, target) > 10**400
    with pytest.raises(op.OffPolicyError, match="beyond the range of floats"):
        theory.cramer_rao_tree(mdp, plain(behavior), target, unroll=True)
    assert theory.cramer_rao_tree(exact, behavior, target, unroll=True) == 2 * sum(10**t for t in range(1, 401))
    assert theory.cramer_rao_dag(mdp, plain(behavior), target, unroll=True) == pytest.approx(2 * 10 * 400)


def population(process, behavior, target, q_hat, r_hat):
    """A log that holds each trajectory as often as its probability says."""
    weighed = list(process.paths(behavior))
    copies = np.lcm.reduce([p.denominator for p, _ in weighed])
    rows, episode = [], 0
    for p, steps in weighed:
        trajectory = paths.annotated(steps, behavior, target, q_hat, r_hat)
        for _ in range(int(p * copies)):
            rows += [
                {
                    "episode": episode,
                    "step": t,
                    "reward": float(x.reward),
                    "ratio": float(x.rho),
                    "q_hat": float(x.q_hat),
                    "v_hat": float(x.v_hat),
                    "r_hat": float(x.r_hat),
                }
                for t, x in enumerate(trajectory)
            ]
            episode += 1
    return pl.DataFrame(rows)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_log_in_the_true_proportions_has_these_values_and_standard_errors(seed):
    """There the sample is the population, so that SE² (n - 1) is the variance, asymptotic ones included."""
    process = paths.random_process(seed, parts=4)
    start = [Fraction(1, 4), Fraction(3, 4), Fraction(0)]
    process = paths.Process(start, process.outcomes, process.discount, process.terminal)
    mdp = process.mdp()
    behavior, target = paths.random_policies(seed, parts=4)
    wrong = paths.random_process(100 + seed).mdp()
    r_hat = theory.Rewards(wrong.reward_mean)
    model = mdp.model(wrong.transitions, r_hat)
    q_hat = theory.q_values(model, target)
    log = population(process, behavior, target, q_hat, (model.transitions * model.reward_mean).sum(axis=-1))
    expected = {
        "is": theory.is_variance(mdp, behavior, target),
        "step-is": theory.step_is_variance(mdp, behavior, target),
        "wis": theory.wis_variance(mdp, behavior, target),
        "step-wis": theory.step_wis_variance(mdp, behavior, target),
        "dr": theory.dr_variance(mdp, behavior, target, q_hat),
        "wdr": theory.wdr_variance(mdp, behavior, target, q_hat),
        "dr-bsl": theory.dr_bsl_variance(mdp, behavior, target, Fraction(3, 4)),
    }
    discount, value = float(process.discount), float(theory.value(mdp, target))
    options = {"discount": discount, "horizon": process.horizon, "baseline": 0.75}
    ev = op.evaluate(log, estimators=[*expected, "dr-v2"], **options)
    n = log["episode"].n_unique()
    for estimator, variance in expected.items():
        assert ev[estimator].value == pytest.approx(value, rel=1e-12)
        assert ev[estimator].std_error ** 2 * (n - 1) == pytest.approx(float(variance), rel=1e-10)
    bias = float(theory.dr_v2_bias(mdp, target, wrong.transitions, r_hat))
    assert ev["dr-v2"].value == pytest.approx(value + bias, rel=1e-12)


def test_the_survival_problem_has_its_textbook_value():
    """One state, action 0 goes on, action 1 stops, a reward of 1 each step."""
    mdp = theory.MDP([[[1.0, 0.0], [0.0, 1.0]]] * 2, [[1.0, 1.0]] * 2, [1.0, 0.0], horizon=2, terminal=[1])
    assert theory.value(mdp, [[0.8, 0.2]] * 2) == pytest.approx(1.8, rel=1e-15)


def test_demo_value_is_the_value_of_the_demo():
    moves = op.demo._transitions()
    p = np.zeros((4, 2, 4))
    p[:3, :, :3], p[:3, :, 3] = moves, 1 - moves.sum(axis=2)
    rewards = np.vstack([op.demo.PURCHASE, np.zeros((1, 2))])
    mdp = theory.MDP(p, rewards, np.eye(4)[op.demo.START], op.demo.HORIZON, op.demo.DEMO_DISCOUNT, terminal=[3])
    sends = op.demo.TARGET_SENDS
    assert theory.value(mdp, [[1 - sends, sends]] * 4) == pytest.approx(op.demo_value(), rel=1e-14)
