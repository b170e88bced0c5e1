"""Theorems 2 and 3 against the Cramér-Rao bound of the Fisher information matrix; structure, unrolling, efficiency."""

from fractions import Fraction

import fisher
import numpy as np
import offpolicy as op
import paths
import pytest
from offpolicy import theory

SEEDS = range(6)
HALF = Fraction(1, 2)


def problem(seed, horizon=2, **options):
    process = paths.random_process(seed, horizon=horizon, **options)
    return process, process.mdp(), *paths.random_policies(seed, horizon=horizon)


@pytest.mark.parametrize("seed", SEEDS)
def test_theorem_2_is_the_bound_of_the_fisher_information_over_histories(seed):
    process, mdp, behavior, target = problem(seed)
    expected = fisher.constrained_bound(process, behavior, target, fisher.by_history)
    assert theory.cramer_rao_tree(mdp, behavior, target, unroll=True) == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_theorem_3_is_the_bound_of_the_fisher_information_over_states(seed):
    process, mdp, behavior, target = problem(seed, horizon=3)
    expected = fisher.constrained_bound(process, behavior, target, fisher.by_step)
    assert theory.cramer_rao_dag(mdp, behavior, target, unroll=True) == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_dr_with_the_true_q_attains_the_tree_bound_and_no_estimator_is_below_it(seed):
    _, mdp, behavior, target = problem(seed, horizon=3)
    bound = theory.cramer_rao_tree(mdp, behavior, target, unroll=True)
    assert theory.dr_variance(mdp, behavior, target, theory.q_values(mdp, target)) == bound
    others = [
        theory.dr_variance(mdp, behavior, target, paths.random_q(seed)),
        theory.is_variance(mdp, behavior, target),
        theory.step_is_variance(mdp, behavior, target),
        theory.wis_variance(mdp, behavior, target),
        theory.step_wis_variance(mdp, behavior, target),
        theory.dr_bsl_variance(mdp, behavior, target, HALF),
        theory.wdr_variance(mdp, behavior, target, paths.random_q(seed)),
    ]
    assert min(others) >= bound
    assert theory.cramer_rao_dag(mdp, behavior, target, unroll=True) <= bound


def test_meeting_paths_make_the_dag_easier_than_the_tree():
    _, mdp, behavior, target = problem(1, horizon=3, terminal=False)
    dag = theory.cramer_rao_dag(mdp, behavior, target, unroll=True)
    assert dag < theory.cramer_rao_tree(mdp, behavior, target, unroll=True)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["tree", "dag"])
def test_unrolling_has_the_structure_and_keeps_values_variances_and_the_bound(seed, kind):
    _, mdp, behavior, target = problem(seed)
    unroll = {"tree": theory.unroll_tree, "dag": theory.unroll_dag}[kind]
    bound = {"tree": theory.cramer_rao_tree, "dag": theory.cramer_rao_dag}[kind]
    unrolled = unroll(mdp)
    pi0, pi1, q_hat = unrolled.policy(behavior), unrolled.policy(target), paths.random_q(seed, horizon=2)
    assert theory.structure_of(unrolled.mdp) in {"tree": ("tree",), "dag": ("tree", "dag")}[kind]
    assert theory.value(unrolled.mdp, pi1) == theory.value(mdp, target)
    variance = theory.dr_variance(mdp, behavior, target, q_hat)
    assert theory.dr_variance(unrolled.mdp, pi0, pi1, unrolled.q_hat(q_hat)) == variance
    assert theory.step_wis_variance(unrolled.mdp, pi0, pi1) == theory.step_wis_variance(mdp, behavior, target)
    asymptotic = theory.wdr_variance(mdp, behavior, target, q_hat)
    assert theory.wdr_variance(unrolled.mdp, pi0, pi1, unrolled.q_hat(q_hat)) == asymptotic
    assert bound(unrolled.mdp, pi0, pi1) == bound(mdp, behavior, target, unroll=True)


def test_on_a_tree_both_theorems_agree():
    _, mdp, behavior, target = problem(2)
    tree = theory.unroll_tree(mdp)
    policies = tree.policy(behavior), tree.policy(target)
    assert theory.cramer_rao_dag(tree.mdp, *policies) == theory.cramer_rao_tree(tree.mdp, *policies)


def diamond():
    """0 goes to 1 or 2, and both to 3 or 4: a DAG and no tree."""
    p = np.full((5, 2, 5), Fraction(0))
    p[0, 0, 1] = p[0, 1, 2] = p[1, 0, 3] = p[1, 1, 4] = p[2, 0, 3] = p[2, 1, 4] = p[3:, :, 4] = Fraction(1)
    return p


def test_structures_are_told_apart():
    rewards = np.zeros((5, 2))
    dag = theory.MDP(diamond(), rewards, np.eye(5)[0], horizon=3)
    shorter = theory.MDP(diamond(), rewards, np.eye(5)[0], horizon=2)
    later = theory.MDP(diamond(), rewards, [HALF, 0, 0, HALF, 0], horizon=3)
    assert [theory.structure_of(mdp) for mdp in (dag, shorter, later)] == ["dag", "tree", None]


def test_a_tree_with_a_shared_state_is_refused_by_name():
    mdp = theory.MDP(diamond(), np.zeros((5, 2)), np.eye(5)[0], horizon=3)
    policy = np.full((5, 2), HALF)
    with pytest.raises(
        op.OffPolicyError, match="no tree: state 3 follows on state 1, action 0 and on state 2, action 0"
    ):
        theory.cramer_rao_tree(mdp, policy, policy)
    assert theory.cramer_rao_dag(mdp, policy, policy) == 0


def test_a_recurring_state_is_refused_by_name():
    mdp = theory.MDP([[[0.5, 0.5]], [[0.0, 1.0]]], [[1.0], [0.0]], [1.0, 0.0], horizon=3)
    for bound, kind in ((theory.cramer_rao_tree, "tree"), (theory.cramer_rao_dag, "DAG")):
        with pytest.raises(op.OffPolicyError, match=f"no {kind}: state 0 occurs at steps 0 and 1; unroll=True"):
            bound(mdp, [[1.0], [1.0]], [[1.0], [1.0]])


def test_a_shared_end_does_not_spoil_a_tree():
    p = np.zeros((3, 1, 3))
    p[0, 0, 1] = p[0, 0, 2] = 0.5
    p[1, 0, 2] = 1.0
    mdp = theory.MDP(p, np.ones((3, 1)), [1.0, 0.0, 0.0], horizon=3, terminal=[2])
    assert theory.structure_of(mdp) == "tree"
    assert theory.cramer_rao_tree(mdp, np.ones((3, 1)), np.ones((3, 1))) == 0.25


def test_nothing_follows_on_a_terminal_state_in_an_unrolled_mdp():
    mdp = theory.MDP([[[HALF, HALF]], [[0, 1]]], [[1], [0]], [1, 0], horizon=3, terminal=[1])
    ended = [label for label in theory.unroll_tree(mdp).states if 1 in label[:-1]]
    assert ended == []


def test_a_tree_too_large_to_build_still_has_its_bound():
    _, mdp, behavior, target = problem(0, horizon=3, terminal=False)
    with pytest.raises(
        op.OffPolicyError, match=r"the tree has more than max_states=50 states; cramer_rao_tree\(\.\.\."
    ):
        theory.unroll_tree(mdp, max_states=50)
    assert theory.cramer_rao_tree(mdp, behavior, target, unroll=True) > 0


def test_efficiency_is_each_variance_over_both_bounds():
    _, mdp, behavior, target = problem(4, horizon=3)
    q_hat, q = paths.random_q(4), theory.q_values(mdp, target)
    table = theory.efficiency(mdp, behavior, target, q_hat, baseline=HALF)
    tree = float(theory.cramer_rao_tree(mdp, behavior, target, unroll=True))
    dag = float(theory.cramer_rao_dag(mdp, behavior, target, unroll=True))
    names = [(row["estimator"], row["q_hat"]) for row in table.iter_rows(named=True)]
    modelled = [(estimator, model) for estimator in ("dr", "wdr") for model in ("given", "true")]
    assert names == [*((e, None) for e in ("is", "step-is", "wis", "step-wis", "dr-bsl")), *modelled]
    variances = [
        theory.is_variance(mdp, behavior, target),
        theory.step_is_variance(mdp, behavior, target),
        theory.wis_variance(mdp, behavior, target),
        theory.step_wis_variance(mdp, behavior, target),
        theory.dr_bsl_variance(mdp, behavior, target, HALF),
        theory.dr_variance(mdp, behavior, target, q_hat),
        theory.dr_variance(mdp, behavior, target, q),
        theory.wdr_variance(mdp, behavior, target, q_hat),
        theory.wdr_variance(mdp, behavior, target, q),
    ]
    assert table["variance"].to_list() == [float(x) for x in variances]
    assert table["over_tree"].to_list() == pytest.approx([float(x) / tree for x in variances], rel=1e-14)
    assert table["over_dag"].to_list() == pytest.approx([float(x) / dag for x in variances], rel=1e-14)
    assert dict(table.filter(q_hat="true").select("estimator", "over_tree").iter_rows()) == {"dr": 1, "wdr": 1}
    assert dict(table.select("estimator", "kind").iter_rows()) == {
        "is": "exact",
        "step-is": "exact",
        "wis": "asymptotic",
        "step-wis": "asymptotic",
        "dr-bsl": "exact",
        "dr": "exact",
        "wdr": "asymptotic",
    }
    alone = theory.efficiency(mdp, behavior, target)["estimator"].to_list()
    assert alone == ["is", "step-is", "wis", "step-wis", "dr", "wdr"]


def test_where_nothing_is_random_the_ratio_is_null_or_infinite():
    mdp = theory.MDP([[[1], [1]]], [[1, 2]], [Fraction(1)], horizon=1)
    table = theory.efficiency(mdp, [[HALF, HALF]], [[0, 1]])
    assert dict(table.select("estimator", "over_tree").iter_rows())["step-is"] == float("inf")
    assert table["over_tree"][-1] is None
