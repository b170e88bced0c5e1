"""What does not make sense is refused, with the step, state and action; what does not matter is not."""

import math
from fractions import Fraction

import numpy as np
import offpolicy as op
import pytest
from offpolicy import theory

P = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.25, 0.75]]])
R = np.array([[1.0, 2.0], [3.0, 4.0]])
MU = [0.5, 0.5]
UNIFORM = np.full((2, 2), 0.5)


def changed(array, index, value):
    new = np.array(array, dtype=float)
    new[index] = value
    return new


def mdp(**options):
    return theory.MDP(**{"transitions": P, "rewards": R, "initial": MU, "horizon": 3, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"transitions": changed(P, (1, 0, 1), 0.9)},
            "transitions: the probabilities of state 1, action 0 add to 0.9, not 1",
        ),
        (
            {"transitions": changed(np.tile(P, (3, 1, 1, 1)), (2, 0, 1, 1), 0.5)},
            "transitions: the probabilities of step 2, state 0, action 1 add to 1.5, not 1",
        ),
        (
            {"transitions": changed(P, (0, 0), [-0.5, 1.5])},
            "transitions: the probabilities of state 0, action 0 have -0.5; each must be from 0 to 1",
        ),
        ({"transitions": P[0]}, "transitions must be (S, A, S), or (3, S, A, S), not (2, 2)"),
        ({"transitions": np.tile(P, (4, 1, 1, 1))}, "transitions must be (S, A, S), or (3, S, A, S), not (4, 2, 2, 2)"),
        ({"transitions": [[1.0], [1.0, 0.0]]}, "transitions must be an array of numbers"),
        ({"transitions": changed(P, (0, 0, 0), math.nan)}, "transitions must be finite, not nan at index (0, 0, 0)"),
        ({"rewards": changed(R, (1, 0), math.inf)}, "rewards must be finite, not inf at index (1, 0)"),
        ({"rewards": [["a", "b"]] * 2}, "rewards must hold numbers"),
        ({"rewards": [1.0, 2.0]}, "rewards must be one of (2, 2), (2, 2, 2), (3, 2, 2), (3, 2, 2, 2), not (2,)"),
        ({"rewards": np.zeros((2, 2, 2)), "horizon": 2}, "may be (H, S, A) or (S, A, S): give them as (H, S, A, S)"),
        ({"initial": [0.5, 0.4]}, "initial: the probabilities add to 0.9, not 1"),
        ({"initial": [1.0]}, "initial must be (2,), one for each state, not (1,)"),
        ({"horizon": 0}, "horizon must be a whole number of at least 1, not 0"),
        ({"discount": 1.5}, "discount must be between 0 and 1, not 1.5"),
        ({"terminal": [2]}, "the terminal state 2 is not one of 0 to 1"),
        ({"terminal": [True, False]}, "terminal names states by their numbers, not by bool"),
        ({"horizon": 2.5}, "horizon must be a whole number of at least 1, not 2.5"),
        ({"initial": [Fraction(1), None]}, "initial must hold finite numbers"),
    ],
)
def test_an_mdp_that_makes_no_sense_is_refused(options, message):
    with pytest.raises(op.UsageError) as error:
        mdp(**options)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (changed(UNIFORM, (1, 0), 0.4), "behavior: the probabilities of state 1 add to 0.9, not 1"),
        (
            changed(np.tile(UNIFORM, (3, 1, 1)), (2, 0, 0), 0.6),
            "behavior: the probabilities of step 2, state 0 add to 1.1, not 1",
        ),
        (np.full((2, 3), 1 / 3), "behavior must be (2, 2) or (3, 2, 2), not (2, 3)"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(policy, message):
    with pytest.raises(op.UsageError) as error:
        theory.step_is_variance(mdp(), policy, UNIFORM)
    assert message in str(error.value)


@pytest.mark.parametrize("baseline", [float("nan"), float("inf"), "half", [0.5, 0.5]], ids=str)
def test_a_baseline_that_is_no_number_is_refused(baseline):
    for function in (theory.dr_bsl_variance, theory.efficiency):
        with pytest.raises(op.UsageError, match="baseline must"):
            function(mdp(), UNIFORM, UNIFORM, baseline=baseline)


def test_a_q_hat_or_model_of_another_shape_is_refused():
    with pytest.raises(op.UsageError, match=r"q_hat must be \(2, 2\) or \(3, 2, 2\), not \(2,\)"):
        theory.dr_variance(mdp(), UNIFORM, UNIFORM, [0.0, 0.0])
    with pytest.raises(op.UsageError, match="the model: transitions: the probabilities of state 0, action 1 add"):
        theory.dr_v2_bias(mdp(), UNIFORM, changed(P, (0, 1, 0), 0.9), R)
    with pytest.raises(
        op.UsageError, match=r"the model: transitions must be \(2, 2, 2\) or \(3, 2, 2, 2\), not \(1, 1, 1\)"
    ):
        theory.dr_v2_bias(theory.MDP(P, R, MU, horizon=3), UNIFORM, [[[1.0]]], [[1.0]])


def test_rewards_that_make_no_sense_are_refused():
    with pytest.raises(op.UsageError, match="a variance of rewards is -1; none can be below 0"):
        theory.Rewards([[1.0]], [[-1.0]])
    with pytest.raises(op.UsageError, match="one shape"):
        theory.Rewards([[1.0]], [1.0])
    with pytest.raises(op.UsageError, match=r"rewards: the probabilities at index \(0, 1\) add to 0.5, not 1"):
        theory.Rewards.from_distribution([0.0, 1.0], [[[0.5, 0.5], [0.5, 0.0]]])
    with pytest.raises(op.UsageError, match="one last axis"):
        theory.Rewards.from_distribution([0.0, 1.0, 2.0], [[[0.5, 0.5], [0.5, 0.5]]])
    with pytest.raises(op.UsageError, match="do not broadcast"):
        theory.Rewards.from_distribution(np.zeros((3, 2)), [[[0.5, 0.5], [0.5, 0.5]]])


ALL = (
    theory.is_variance,
    theory.step_is_variance,
    theory.wis_variance,
    theory.step_wis_variance,
    theory.efficiency,
    lambda *pair: theory.cramer_rao_tree(*pair, unroll=True),
    lambda *pair: theory.cramer_rao_dag(*pair, unroll=True),
    lambda *pair: theory.dr_variance(*pair, q_hat=R),
    lambda *pair: theory.wdr_variance(*pair, q_hat=R),
    lambda *pair: theory.dr_bsl_variance(*pair, baseline=1.0),
)


@pytest.mark.parametrize("function", ALL)
def test_a_target_without_support_is_refused_with_step_state_and_action(function):
    behavior = np.tile(UNIFORM, (3, 1, 1))
    behavior[1, 1] = [1.0, 0.0]
    with pytest.raises(op.OffPolicyError, match="at step 1 in state 1 the target takes action 1 with"):
        function(mdp(), behavior, UNIFORM)


@pytest.mark.parametrize("function", ALL)
def test_support_does_not_matter_where_the_target_never_comes(function):
    """The target stays in state 0, and the behaviour policy has its own way in state 1, which it may reach."""
    rows = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]])
    start = theory.MDP(rows, theory.Rewards(R, np.ones((2, 2))), [1.0, 0.0], horizon=3)
    target = np.array([[1.0, 0.0], [1.0, 0.0]])
    supported, other = np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([[0.5, 0.5], [0.0, 1.0]])
    first, second = function(start, supported, target), function(start, other, target)
    assert first.equals(second) if hasattr(first, "equals") else first == second


def test_what_is_said_of_a_terminal_state_is_not_looked_at():
    nonsense = theory.MDP(changed(P, 1, 7.0), changed(R, 1, 100.0), [1.0, 0.0], horizon=3, discount=0.5, terminal=[1])
    fair = theory.MDP(P, R, [1.0, 0.0], horizon=3, discount=0.5, terminal=[1])
    bad, good = changed(UNIFORM, 1, -3.0), np.array([[0.25, 0.75], [0.25, 0.75]])
    assert theory.value(nonsense, bad) == theory.value(fair, UNIFORM)
    expected = theory.dr_variance(fair, UNIFORM, good, R)
    assert theory.dr_variance(nonsense, bad, good, changed(R, 1, -50.0)) == expected


def test_a_distribution_of_rewards_is_its_mean_and_variance():
    third = Fraction(1, 3)
    rewards = theory.Rewards.from_distribution([0, 1, 5], [[[third, third, third], [0, 1, 0]]])
    assert rewards.mean.tolist() == [[2, 1]]
    assert rewards.variance.tolist() == [[Fraction(14, 3), 0]]
