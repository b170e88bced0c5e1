"""Counting and dynamic programming against enumeration in rational numbers."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import offpolicy as op
import pytest
from hypothesis import given
from hypothesis import strategies as st
from offpolicy.mdp import SparseModel, TransitionCounts, evaluate_policies, optimal_policy, q_values
from tiny_mdp import (
    ACTIONS,
    STATES,
    dense,
    deterministic_policies,
    discounted_value,
    random_policy,
    random_process,
    value_by_paths,
)

HORIZON = 4


def close(found, exact):
    return abs(Fraction(float(found)) - exact) <= Fraction(1, 10**12) * max(1, abs(exact))


@pytest.mark.parametrize("seed", range(8))
def test_values_are_sums_over_all_paths(seed):
    rng = np.random.default_rng(seed)
    rewards, transitions = random_process(rng)
    stationary, changing = random_policy(rng), random_policy(rng, HORIZON)
    model = SparseModel.from_dense(*dense(rewards, transitions))
    tables = [np.array(stationary, dtype=float), np.array(changing, dtype=float)]
    found = evaluate_policies(model, tables, HORIZON, 0.75)
    ask = [lambda t: stationary, lambda t: changing[t]]
    for v, at in zip(found, ask, strict=True):
        for t, s in itertools.product(range(HORIZON), range(STATES)):
            assert close(v[t, s], value_by_paths(rewards, transitions, at, s, t, HORIZON, Fraction(3, 4)))


def test_q_values_are_one_step_of_the_model():
    rng = np.random.default_rng(3)
    rewards, transitions = random_process(rng)
    policy = random_policy(rng)
    model = SparseModel.from_dense(*dense(rewards, transitions))
    v = evaluate_policies(model, [np.array(policy, dtype=float)], HORIZON, 0.75)[0]
    for t in range(HORIZON):
        q = q_values(model, v, t, 0.75)
        for s, a in itertools.product(range(STATES), range(ACTIONS)):
            rest = [
                value_by_paths(rewards, transitions, lambda _: policy, n, t + 1, HORIZON, Fraction(3, 4))
                for n in range(3)
            ]
            exact = rewards[s][a] + Fraction(3, 4) * sum(p * v for p, v in zip(transitions[s][a], rest, strict=False))
            assert close(q[s, a], exact)
    with pytest.raises(op.UsageError, match="no step 4"):
        q_values(model, v, HORIZON, 0.75)


@pytest.mark.parametrize("maximize", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_optimal_policy_is_the_best_of_all(seed, maximize):
    rng = np.random.default_rng(seed)
    rewards, transitions = random_process(rng)
    legal = rng.random((STATES, ACTIONS)) < 0.7
    legal[np.arange(STATES), rng.integers(0, ACTIONS, STATES)] = True
    best = optimal_policy(SparseModel.from_dense(*dense(rewards, transitions)), 0.9, maximize, legal)
    assert legal[np.arange(STATES), best.actions].all()
    reached = discounted_value(rewards, transitions, [int(a) for a in best.actions], Fraction(9, 10))
    extreme = max if maximize else min
    others = [discounted_value(rewards, transitions, p, Fraction(9, 10)) for p in deterministic_policies(legal)]
    for s in range(STATES):
        assert reached[s] == extreme(v[s] for v in others)
        assert abs(float(reached[s]) - best.values[s]) < 1e-8


def test_the_first_of_equal_actions_is_taken():
    model = SparseModel.from_dense(np.ones((2, 3)), np.tile(np.eye(2)[:, None], (1, 3, 1)))
    assert list(optimal_policy(model, 0.9).actions) == [0, 0]
    assert list(optimal_policy(model, 0.9, legal=[[False, True, True], [True] * 3]).actions) == [1, 0]


def test_counts_are_frequencies():
    rng = np.random.default_rng(0)
    n = 4000
    s, a, following = rng.integers(0, 5, n), rng.integers(0, 2, n), rng.integers(0, 5, n)
    rewards, terminal, known = rng.normal(size=n), rng.random(n) < 0.1, rng.random(n) < 0.9
    known |= terminal
    counts = TransitionCounts(6, 2)
    counts.add(s, a, rewards, following, terminal, known)
    model = counts.model(unseen_reward=-7.0)
    moves = Counter(zip(s[known], a[known], np.where(terminal, 6, following)[known], strict=True))
    start, successor, probability = model.successors()
    for state, action in itertools.product(range(6), range(2)):
        here = (s == state) & (a == action)
        assert counts.visits[state, action] == here.sum()
        pair = slice(start[2 * state + action], start[2 * state + action + 1])
        found = dict(zip(successor[pair].tolist(), probability[pair].tolist(), strict=True))
        total = sum(moves[state, action, n] for n in range(7))
        if total:
            exact = sum(map(Fraction, rewards[here])) / int(here.sum())
            assert model.rewards[state, action] == float(exact)
            assert found == {n: moves[state, action, n] / total for n in range(6) if moves[state, action, n]}
        else:
            assert (model.rewards[state, action], found) == (-7.0, {state: 1.0})


@given(order=st.permutations(range(4)), exponents=st.lists(st.integers(-80, 40), min_size=4, max_size=4))
def test_parts_merge_in_any_order_to_the_same_bytes(order, exponents):
    rng = np.random.default_rng(5)
    s, a, following = rng.integers(0, 3, 40), rng.integers(0, 2, 40), rng.integers(0, 3, 40)
    rewards = rng.normal(size=40) * 2.0 ** np.repeat(exponents, 10)
    whole = TransitionCounts(3, 2)
    whole.add(s, a, rewards, following)
    merged = TransitionCounts(3, 2)
    for i in order:
        part, rows = TransitionCounts(3, 2), slice(10 * i, 10 * i + 10)
        part.add(s[rows], a[rows], rewards[rows], following[rows])
        merged.merge(TransitionCounts.from_bytes(part.to_bytes()))
    assert merged.to_bytes() == whole.to_bytes()
    assert (merged.model(0.0).rewards == whole.model(0.0).rewards).all()


def test_counts_merge_with_themselves():
    counts = TransitionCounts(2, 1)
    counts.add([0], [0], [1.5], [1])
    counts.merge(counts)
    assert counts.visits[0, 0] == 2


def test_damaged_bytes_are_refused():
    content = TransitionCounts(2, 2).to_bytes()
    for i in range(len(content)):
        with pytest.raises(op.OffPolicyError):
            TransitionCounts.from_bytes(content[:i] + bytes([content[i] ^ 1]) + content[i + 1 :])
    with pytest.raises(op.OffPolicyError):
        TransitionCounts.from_bytes(op._core.Partial.__name__.encode())


GOOD = {"states": [0, 1], "actions": [0, 1], "rewards": [1.0, 2.0], "next_states": [1, 0]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"states": [0, 2]}, "row 1: the state is 2, must be from 0 to 1"),
        ({"actions": [-1, 0]}, "row 0: the action is -1, must be from 0 to 1"),
        ({"next_states": [0, 5]}, "row 1: the next state is 5, must be from 0 to 1"),
        ({"rewards": [0.0, np.nan]}, "row 1: the reward is nan, must be finite"),
        ({"rewards": [0.0]}, "same length"),
        ({"states": [0.0, 1.0]}, "whole numbers"),
        ({"states": [[0, 1]]}, "whole numbers"),
    ],
)
def test_bad_steps_are_refused_and_not_counted(change, message):
    counts = TransitionCounts(2, 2)
    with pytest.raises(op.OffPolicyError, match=message):
        counts.add(**{**GOOD, **change})
    assert counts.visits.sum() == 0


def test_bad_arguments_are_refused():
    model = SparseModel.from_dense(np.ones((2, 1)), np.zeros((2, 1, 2)))
    policy = np.ones((2, 1))
    for call, message in [
        (lambda: TransitionCounts(0, 2), "at least one state"),
        (lambda: TransitionCounts(-1, 2), "negative"),
        (lambda: TransitionCounts(2, 2).merge(TransitionCounts(2, 3)), "as many states and actions"),
        (lambda: TransitionCounts(2, 2).model(np.inf), "finite"),
        (lambda: evaluate_policies(model, [policy], 0, 0.9), "horizon"),
        (lambda: evaluate_policies(model, [policy], 3, 1.1), "discount"),
        (lambda: evaluate_policies(model, [policy.T], 3, 0.9), r"policy 0 must be \(2, 1\) or \(3, 2, 1\)"),
        (lambda: optimal_policy(model, 1.0), "below 1"),
        (lambda: optimal_policy(model, 0.9, legal=[[True], [False]]), "state 1 has no legal action"),
        (lambda: optimal_policy(model, 0.9, legal=[True]), "legal must be"),
        (lambda: SparseModel.from_dense(np.ones((2, 1)), np.ones((2, 1, 2))), "add to 2"),
        (lambda: SparseModel.from_dense(np.ones((2, 1)), np.ones((2, 1))), "do not fit"),
    ]:
        with pytest.raises(op.OffPolicyError, match=message):
            call()


def test_no_policies_have_no_values():
    assert evaluate_policies(SparseModel.from_dense(np.ones((1, 1)), np.zeros((1, 1, 1))), [], 3, 0.9) == []
