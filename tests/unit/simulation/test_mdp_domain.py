"""`op.from_mdp`: a domain from arrays, whose values are those of the theory."""

import numpy as np
import offpolicy as op
import pytest
from offpolicy.policies import FromCallable, TabularPolicy
from offpolicy.testing import Walk, check_domain

RNG = np.random.default_rng(3)
S, A, H, GAMMA = 5, 3, 8, 0.9
P = RNG.dirichlet(np.ones(S), size=(S, A))
R = RNG.normal(size=(S, A, S))
START = np.array([0.5, 0.5, 0.0, 0.0, 0.0])
LEGAL = np.ones((S, A), dtype=bool)
LEGAL[1, 2] = False


def made(**others):
    return op.from_mdp(P, R, START, **{"horizon": H, "discount": GAMMA, "terminal": [4], "legal": LEGAL, **others})


TABLE = RNG.dirichlet(np.ones(A), size=(H, S))
POLICY = TabularPolicy(TABLE, op.Grid((S,)))


def test_it_conforms_with_and_without_ends_and_forbidden_actions():
    check_domain(made())
    check_domain(made(terminal=(), legal=None))
    check_domain(op.from_mdp(P, R.mean(axis=2), START, horizon=H))


def test_its_values_are_those_of_the_theory():
    mdp = op.theory.MDP(P, R, START, H, GAMMA, terminal=[4])
    assert made().value(POLICY) == op.theory.value(mdp, TABLE)
    q, _ = made().exact_values(POLICY)
    assert np.array_equal(q, op.theory.q_values(mdp, TABLE))


def test_a_walk_from_its_arrays_has_the_values_of_the_walk():
    walk = Walk()
    moves, rewards = walk._model()
    moves[0, :, 0] = moves[6, :, 6] = 1.0
    domain = op.from_mdp(
        moves,
        rewards,
        np.eye(7)[3],
        horizon=walk.horizon,
        discount=walk.discount,
        terminal=[0, 6],
        legal=walk.legal(np.arange(7)[:, None]),
    )
    for policy in (walk.behavior, walk.policies["eager"]):
        assert domain.value(policy) == pytest.approx(walk.value(policy), rel=1e-12)
    states = np.arange(1, 6)[:, None]
    assert np.array_equal(domain.behavior.probabilities(states, 0), walk.behavior.probabilities(states, 0))


def test_the_range_of_rewards_is_what_can_happen():
    never = P.copy()
    never[:, :, 2] = 0
    never /= never.sum(axis=2, keepdims=True)
    rewards = R.copy()
    rewards[:, :, 2], rewards[4] = 1e6, -1e6
    low, high = op.from_mdp(never, rewards, START, horizon=H, terminal=[4]).reward_range
    assert -10 < low < high < 10


def test_estimates_come_near_the_exact_value():
    domain = made()
    target = FromCallable(lambda states, step: np.tile([0.5, 0.5, 0.0], (len(states), 1)))
    log = domain.simulate(domain.behavior, 20_000, seed=1)
    found = op.evaluate(op.annotate(log, target, columns=op.Columns.of(domain)), discount=GAMMA, horizon=H)["step-is"]
    assert abs(found.value - domain.value(target)) < 4 * found.std_error
    cf = op.cross_fit(log, domain, policy=target, fitter="tabular", estimators=["dr-v2"])
    assert abs(cf["dr-v2"].value - domain.value(target)) < 4 * cf["dr-v2"].std_error


BAD = {
    "rows that do not add to 1": (lambda: op.from_mdp(P * 1.1, R, START, horizon=H), "transitions: the probabilities"),
    "transitions by step": (lambda: op.from_mdp([P] * H, R, START, horizon=H), "the same at every step"),
    "rewards by step": (lambda: op.from_mdp(P, np.zeros((H, S, A)), START, horizon=H), "depend on the step"),
    "a terminal start": (lambda: made(terminal=[0]), "the terminal state 0 cannot be a first state"),
    "legal of another shape": (
        lambda: made(legal=LEGAL.T),
        r"legal must be .* of shape \(S, A\) = \(5, 3\)",
    ),
    "legal in numbers": (lambda: made(legal=LEGAL.astype(int)), "array of bool"),
    "nothing legal": (lambda: made(legal=LEGAL & (np.arange(S) != 2)[:, None]), "nothing may be done in state 2"),
    "horizon": (lambda: made(horizon=0), "horizon must be"),
}


@pytest.mark.parametrize("case", BAD)
def test_arrays_that_make_no_domain_are_refused(case):
    make, says = BAD[case]
    with pytest.raises(op.UsageError, match=says):
        make()


def test_a_table_of_gymnasium_is_such_a_domain():
    from offpolicy.simulation.mdp_domain import MDPDomain

    lake = op.from_gymnasium("FrozenLake-v1", horizon=50)
    assert isinstance(lake, MDPDomain)
    again = op.from_mdp(
        lake.mdp.transitions[0], lake.mdp.reward_mean[0], lake.mdp.initial, horizon=50, terminal=[16], name="lake"
    )
    assert again.value(again.behavior) == lake.value(lake.behavior)
