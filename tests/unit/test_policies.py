"""Every kind of policy gives probabilities, keeps to what is legal, and refuses what makes no sense."""

from fractions import Fraction

import numpy as np
import offpolicy as op
import pytest
from hypothesis import given
from hypothesis import strategies as st
from offpolicy import Grid
from offpolicy.policies import (
    EpsilonGreedy,
    FromCallable,
    FromClassifier,
    Mixture,
    Softmax,
    TabularPolicy,
    Uniform,
    every_action,
    probabilities_of,
)

ACTIONS = 3
STATES = np.arange(6)[:, None]
Q = np.array([[1.0, 2.0, 0.0], [5.0, 5.0, 1.0], [-1.0, -2.0, -3.0], [0.0, 4.0, 0.0], [9.0, -9.0, 0.1], [1e6, 0, -1e6]])


def q(states, step):
    return Q[states[:, 0]] + np.asarray(step).reshape(-1, 1) * 0.0


def legal(states):
    """Action 1 is forbidden in odd states."""
    allowed = np.ones((len(states), ACTIONS), dtype=bool)
    allowed[:, 1] = states[:, 0] % 2 == 0
    return allowed


class Classifier:
    """Knows actions 0 and 2 alone."""

    classes_ = np.array([2, 0])

    def predict_proba(self, states):
        if not len(states):
            raise ValueError("no sample")
        high = states[:, 0] / 10
        return np.stack([high, 1 - high], axis=1)


TABLE = np.random.default_rng(5).dirichlet(np.ones(ACTIONS), size=(4, len(STATES)))
KINDS = {
    "uniform": Uniform(ACTIONS),
    "uniform over legal": Uniform(ACTIONS, legal),
    "table": TabularPolicy(TABLE[0], Grid((6,))),
    "table by step": TabularPolicy(TABLE, Grid((6,))),
    "mixture": Mixture(EpsilonGreedy(q), Uniform(ACTIONS), 0.3),
    "epsilon-greedy": EpsilonGreedy(q, 0.3),
    "epsilon-greedy over legal": EpsilonGreedy(q, 0.3, legal),
    "softmax": Softmax(q, 2.0),
    "softmax over legal": Softmax(q, 2.0, legal),
    "function": FromCallable(lambda states, step: np.full((len(states), ACTIONS), 1 / 3)),
    "classifier": FromClassifier(Classifier(), ACTIONS),
}


def test_the_kinds_here_are_all_there_are():
    made = {type(policy) for policy in KINDS.values()}
    public = {
        thing for thing in vars(op.policies).values() if isinstance(thing, type) and hasattr(thing, "probabilities")
    }
    assert public - {op.protocols.Policy} == made


@pytest.mark.parametrize("policy", KINDS.values(), ids=KINDS.keys())
def test_rows_are_probabilities_whatever_the_number_of_rows(policy):
    whole = policy.probabilities(STATES, 0)
    assert whole.shape == (6, ACTIONS)
    assert (whole >= 0).all()
    assert np.abs(whole.sum(axis=1) - 1).max() < 1e-15
    rows = [policy.probabilities(STATES[i : i + 1], 0)[0] for i in range(6)]
    assert np.array_equal(rows, whole)
    assert policy.probabilities(STATES[:0], 0).shape == (0, ACTIONS)


@pytest.mark.parametrize("policy", KINDS.values(), ids=KINDS.keys())
def test_an_array_of_steps_is_the_steps_one_by_one(policy):
    steps = np.array([0, 3, 1, 2, 0, 1])
    one_by_one = [policy.probabilities(STATES[i : i + 1], int(t))[0] for i, t in enumerate(steps)]
    assert np.array_equal(policy.probabilities(STATES, steps), one_by_one)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "legal" in kind])
def test_what_is_forbidden_has_probability_zero(kind):
    pi = KINDS[kind].probabilities(STATES, 0)
    assert (pi[~legal(STATES)] == 0).all()
    assert (pi.sum(axis=1) > 0.999).all()


def test_uniform_shares_among_legal_actions():
    assert Uniform(ACTIONS, legal).probabilities(STATES[:2], 0).tolist() == [[1 / 3] * 3, [0.5, 0, 0.5]]


def test_tables_are_read_by_cell_and_step():
    assert np.array_equal(KINDS["table by step"].probabilities(STATES, 2), TABLE[2])
    assert np.array_equal(KINDS["table"].probabilities(STATES, 2), TABLE[0])


def test_the_first_of_equals_is_best_and_illegal_ones_never():
    pi = EpsilonGreedy(q, 0.0, legal).probabilities(STATES, 0)
    assert pi.argmax(axis=1).tolist() == [1, 0, 0, 0, 0, 0]
    assert EpsilonGreedy(q).probabilities(STATES[1:2], 0).tolist() == [[1, 0, 0]]


def test_epsilon_is_shared_by_legal_actions():
    pi = EpsilonGreedy(q, 0.5, legal).probabilities(STATES[1:2], 0)
    assert pi.tolist() == [[0.75, 0, 0.25]]


def test_softmax_neither_overflows_nor_needs_a_scale():
    pi = Softmax(q, 1e-3).probabilities(STATES, 0)
    assert pi[5].tolist() == [1, 0, 0]
    assert np.allclose(np.log(Softmax(q, 2.0).probabilities(STATES[:1], 0)[0, :2]) @ [1, -1], (1 - 2) / 2)


@given(st.integers(0, 100), st.lists(st.integers(1, 99), min_size=2, max_size=2))
def test_a_mixture_is_exact_to_the_last_bits(percent, shares):
    a, b = (np.array([[share / 100, 1 - share / 100]]) for share in shares)
    mixed = Mixture(FromCallable(lambda s, t: a), FromCallable(lambda s, t: b), percent / 100)
    pi = mixed.probabilities(np.zeros((1, 1)), 0)
    alpha = Fraction(percent / 100)
    for i in range(2):
        exact = (1 - alpha) * Fraction(a[0, i]) + alpha * Fraction(b[0, i])
        assert abs(Fraction(pi[0, i]) - exact) <= 4 * Fraction(1, 2**53)


def test_a_policy_of_several_mixtures_is_asked_once():
    asked = []

    def noted(states, step):
        asked.append(step)
        return TABLE[step, states[:, 0]]

    policy, uniform = FromCallable(noted), Uniform(ACTIONS)
    policies = [policy, *(Mixture(policy, uniform, alpha) for alpha in (0.0, 0.4)), uniform]
    found = probabilities_of([*policies, Mixture(policies[2], policy, 0.5)], STATES, 2)
    assert asked == [2]
    for pi, alone in zip(found, policies, strict=False):
        assert np.array_equal(pi, alone.probabilities(STATES, 2))
    assert np.array_equal(found[4], 0.5 * found[2] + 0.5 * found[0])


@given(st.lists(st.lists(st.floats(-1e300, 1e300), min_size=3, max_size=3), min_size=1), st.floats(1e-3, 1e3))
def test_rows_add_to_one_for_any_values(values, temperature):
    table = np.array(values)
    for policy in (EpsilonGreedy(lambda s, t: table, 0.37), Softmax(lambda s, t: table, temperature)):
        with np.errstate(over="ignore"):
            pi = policy.probabilities(np.zeros((len(table), 1)), 0)
        assert np.abs(pi.sum(axis=1) - 1).max() < 1e-12
        assert (pi >= 0).all()


def test_a_class_that_was_never_seen_has_zero():
    assert KINDS["classifier"].probabilities(STATES, 0)[:, 1].tolist() == [0] * 6
    assert KINDS["classifier"].probabilities(STATES[4:5], 0).tolist() == [[0.6, 0, 0.4]]


def test_every_action_asks_a_model_for_all():
    class Values:
        def q_hat(self, states, actions, step):
            return Q[states[:, 0], actions] + step

    assert np.array_equal(every_action(Values(), ACTIONS)(STATES, 2), Q + 2)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: TabularPolicy(TABLE[0], Grid((5,))), r"must be \(…, 5, actions\)"),
        (lambda: TabularPolicy(TABLE[0] * 2, Grid((6,))), "the table's probabilities of row 0 add to 2, not 1"),
        (lambda: TabularPolicy(-TABLE[0], Grid((6,))), "each must be from 0 to 1"),
        (lambda: Mixture(Uniform(2), Uniform(2), 1.5), "alpha must be between 0 and 1, not 1.5"),
        (lambda: Mixture(Uniform(2), Uniform(3), 0.5).probabilities(STATES, 0), "2 and 3 actions"),
        (lambda: EpsilonGreedy(q, -0.1), "epsilon must be between 0 and 1, not -0.1"),
        (lambda: EpsilonGreedy(q, float("nan")), "epsilon must be between 0 and 1, not nan"),
        (lambda: EpsilonGreedy(lambda s, t: np.zeros(len(s))).probabilities(STATES, 0), r"q must give .* not \(6,\)"),
        (lambda: EpsilonGreedy(lambda s, t: Q * np.nan).probabilities(STATES, 0), "q of row 0 is .*must be finite"),
        (lambda: Softmax(lambda s, t: Q * np.nan).probabilities(STATES, 0), "q of row 0 is .*must be finite"),
        (lambda: Softmax(q, 0.0), "temperature must be above 0 and finite, not 0.0"),
        (lambda: Softmax(q, float("inf")), "temperature must be above 0 and finite, not inf"),
        (
            lambda: Uniform(3, lambda s: legal(s) & False).probabilities(STATES, 0),
            r"no action is legal in row 0, the state \[0\]",
        ),
        (lambda: Softmax(q, 1.0, lambda s: legal(s) & False).probabilities(STATES, 0), "no action is legal in row 0"),
        (lambda: Uniform(4, legal).probabilities(STATES, 0), r"legal must give .* \(6, 4\), not \(6, 3\)"),
        (lambda: KINDS["table by step"].probabilities(STATES, 4), "steps 0 to 3, and not 4 to 4"),
        (lambda: KINDS["table by step"].probabilities(STATES, -1), "steps 0 to 3, and not -1 to -1"),
        (lambda: FromCallable(lambda s, t: [[0.5, 0.5]]).probabilities(STATES, 0), "a row of probabilities a state"),
        (lambda: FromCallable(lambda s, t: [[np.nan, 1]]).probabilities(STATES[:1], 0), "each must be from 0 to 1"),
        (lambda: FromClassifier(Classifier(), 2), r"must be actions 0 to 1, not \[2 0\]"),
    ],
)
def test_what_makes_no_sense_is_refused(make, says):
    with pytest.raises(op.OffPolicyError, match=says):
        make()


def float32_softmax(states, step):
    """What a JAX network gives."""
    logits = np.stack([np.sin(states[:, 0] * k + 0.1 * k) for k in range(1, 35)], axis=1).astype(np.float32)
    weights = np.exp(logits)
    return weights / weights.sum(axis=1, keepdims=True)


def test_float32_probabilities_are_divided_by_their_sum():
    states = np.arange(500)[:, None]
    raw = float32_softmax(states, 0)
    away = np.abs(raw.sum(axis=1, dtype=float) - 1)
    assert (away > 1e-9).any()
    for pi in (FromCallable(float32_softmax).probabilities(states, 0), TabularPolicy(raw, Grid((500,))).table):
        assert pi.dtype == np.float64
        assert np.abs(pi.sum(axis=1) - 1).max() < 1e-9
        assert np.abs(pi - raw).max() < 1e-6


def test_rows_that_add_to_one_in_float64_keep_their_bits():
    assert np.array_equal(FromCallable(lambda s, t: TABLE[0]).probabilities(STATES, 0), TABLE[0])


def test_a_classifier_of_float32_states_is_a_policy():
    from sklearn.neural_network import MLPClassifier

    states = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32)
    labels = (states[:, 0] > 0).astype(int) + (states[:, 1] > 1)
    classifier = MLPClassifier((8,), random_state=0, tol=1e9, n_iter_no_change=2)
    classifier.fit(states, labels)
    assert classifier.predict_proba(states).dtype == np.float32
    pi = FromClassifier(classifier, 3).probabilities(states, 0)
    assert np.abs(pi.sum(axis=1) - 1).max() < 1e-9


def test_what_is_more_than_rounding_is_refused_with_the_difference():
    with pytest.raises(op.OffPolicyError, match=r"row 0 add to 1.0000052, not 1: they differ by 5.2e-06, and up to 1e"):
        FromCallable(lambda s, t: [[0.5, 0.5000052]]).probabilities(STATES[:1], 0)
    with pytest.raises(op.UsageError, match=r"add to 1\.0000052, not 1"):
        op.theory.MDP([[[1.0000052]]], [[1.0]], initial=[1.0], horizon=1)


def test_the_theory_takes_float32_arrays():
    thirds = np.full((3, 2, 3), np.float32(1) / 3, dtype=np.float32)
    mdp = op.theory.MDP(thirds, [[1.0, 2.0]] * 3, initial=thirds[0, 0], horizon=2)
    assert np.abs(mdp.transitions.sum(axis=-1) - 1).max() < 1e-15
    assert abs(op.theory.value(mdp, [[0.5, 0.5]] * 3) - 3.0) < 1e-12
