"""The tabular fitter: aggregation, unseen pairs, several policies, the optimal policy."""

from __future__ import annotations

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from offpolicy.mdp import TransitionCounts, evaluate_policies, q_values
from offpolicy.models.fitters.tabular import Tabular
from offpolicy.policies import FromCallable, Mixture, TabularPolicy, Uniform
from offpolicy.protocols import ModelFitter, ValueModel
from tiny_mdp import STATES, TinyDomain, tiny_log

GRID = op.Grid((STATES,))
DOMAIN = TinyDomain()
CELLS = np.arange(STATES)[:, None]


@pytest.fixture(scope="module")
def log():
    return tiny_log()


@pytest.fixture(scope="module")
def model(log):
    return Tabular(aggregate=GRID).fit(log, DOMAIN)


def same(one, other):
    return (
        all((a == b).all() for a, b in zip(one.sparse.successors(), other.sparse.successors(), strict=True))
        and (one.sparse.rewards == other.sparse.rewards).all()
    )


def test_it_is_a_fitter_by_name(model):
    assert isinstance(op.fitter("tabular"), ModelFitter)
    assert isinstance(model.values(DOMAIN.behavior, 3, 1.0), ValueModel)


def test_counts_are_those_of_the_log(log, model):
    rewards = log.group_by("state", "action").agg(pl.col("reward").mean()).rows()
    for state, action, mean in rewards:
        assert model.sparse.rewards[state, action] == pytest.approx(mean, rel=1e-15)
    start, successor, probability = model.sparse.successors()
    moved = log.filter(state=0, action=1)
    for n, p in zip(successor[start[1] : start[2]], probability[start[1] : start[2]], strict=True):
        stays = moved.filter(~pl.col("terminal"), next_state=int(n))
        assert p == stays.height / moved.height
    assert probability[start[1] : start[2]].sum() == pytest.approx(1 - moved["terminal"].mean())


def test_any_batch_and_any_form_of_log_gives_the_same_model(log, model, tmp_path):
    path = tmp_path / "log.parquet"
    log.write_parquet(path, row_group_size=100)
    for other, rows in [(log, 7), (path, 64), (log.lazy(), None), (log.reverse(), None)]:
        assert same(Tabular(aggregate=GRID, batch_rows=rows).fit(other, DOMAIN), model)


@pytest.mark.parametrize("dropped", [["next_state"], ["next_state", "terminal"]])
def test_successors_may_be_in_the_next_row(log, dropped):
    """The last row of an episode of full length has no known successor then: its reward alone counts."""
    last = (log["step"] == DOMAIN.horizon - 1) & ~log["terminal"]
    counts = TransitionCounts(STATES, 2)
    columns = [log[name].to_numpy() for name in ("state", "action", "reward", "next_state", "terminal")]
    if "terminal" in dropped:  # an end at the horizon cannot be told from a cut
        last = log["step"] == DOMAIN.horizon - 1
        columns[-1] = columns[-1] & ~last.to_numpy()
    counts.add(*columns, known=~last.to_numpy())
    found = Tabular(aggregate=GRID, batch_rows=50).fit(log.drop(dropped), DOMAIN).sparse
    exact = counts.model(DOMAIN.reward_range[0])
    assert (found.rewards == exact.rewards).all()
    assert all((a == b).all() for a, b in zip(found.successors(), exact.successors(), strict=True))


def test_a_function_aggregates_like_the_grid(log, model):
    by_function = Tabular(aggregate=lambda states: states[:, 0], cells=STATES).fit(log, DOMAIN)
    assert same(by_function, model)
    pi = FromCallable(lambda states, step: np.where(states == 1, [[0.9, 0.1]], [[0.3, 0.7]]))
    assert (by_function.values(pi, 5, 0.9).v == model.values(pi, 5, 0.9).v).all()
    best = by_function.optimal_policy()
    assert (best.probabilities(CELLS, 0) == model.optimal_policy().table).all()


def test_a_function_needs_its_cells(log):
    with pytest.raises(op.UsageError, match="cells="):
        Tabular(aggregate=lambda states: states[:, 0]).fit(log, DOMAIN)
    with pytest.raises(op.UsageError, match="'tiny' has no grid"):
        Tabular().fit(log, DOMAIN)
    with pytest.raises(op.OffPolicyError, match="not 0 to 1"):
        Tabular(aggregate=lambda states: states[:, 0], cells=2).fit(log, DOMAIN)
    with pytest.raises(op.OffPolicyError, match="whole numbers"):
        Tabular(aggregate=lambda states: states[:, 0] / 2, cells=2).fit(log, DOMAIN)


def test_the_domains_grid_is_the_default(log, model):
    class WithGrid(TinyDomain):
        grid = GRID

    assert same(Tabular().fit(log, WithGrid()), model)


def test_unseen_pairs_have_the_lowest_reward_and_stay(log):
    seen = log.filter(~((pl.col("state") == 1) & (pl.col("action") == 0)))
    low = DOMAIN.reward_range[0]
    for fitter, reward in [(Tabular(aggregate=GRID), low), (Tabular(aggregate=GRID, unseen_reward=3.5), 3.5)]:
        model = fitter.fit(seen, DOMAIN)
        always = TabularPolicy(np.tile([1.0, 0.0], (STATES, 1)), GRID)
        values = model.values(always, 4, 0.5)
        assert values.r_hat(np.array([[1]]), np.array([0])) == [reward]
        assert values.v_hat(np.array([[1]]), 0) == pytest.approx([reward * (1 + 0.5 + 0.25 + 0.125)])


def test_states_outside_the_grid_are_named(log):
    with pytest.raises(op.BadLogError, match=r"episode \d+, step \d+: state = 2: is in no cell"):
        Tabular(aggregate=op.Grid((2,))).fit(log, DOMAIN)


def test_the_state_after_the_end_may_be_anywhere(log, model):
    gone = log.with_columns(next_state=pl.when("terminal").then(99).otherwise("next_state"))
    assert same(Tabular(aggregate=GRID).fit(gone, DOMAIN), model)


POLICIES = [
    Uniform(2),
    TabularPolicy(np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]), GRID),
    Mixture(TabularPolicy(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), GRID), Uniform(2), 0.25),
    FromCallable(lambda states, step: np.where(states == 1, [[0.9, 0.1]], [[0.3, 0.7]])),
    FromCallable(lambda states, step: np.tile([[1.0, 0.0], [0.25, 0.75]][step % 2], (len(states), 1))),
]


@pytest.mark.parametrize("policy", POLICIES)
def test_values_are_those_of_the_policys_table(model, policy):
    table = np.stack([policy.probabilities(CELLS, t) for t in range(5)])
    v = evaluate_policies(model.sparse, [table], 5, 0.9)[0]
    values = model.values(policy, 5, 0.9)
    for t in range(5):
        assert (values.v_hat(CELLS, t) == v[t]).all()
        q = q_values(model.sparse, v, t, 0.9)
        for a in range(2):
            assert (values.q_hat(CELLS, np.full(STATES, a), t) == q[:, a]).all()
    steps = np.array([4, 0, 2])
    assert (values.v_hat(CELLS, steps) == v[steps, np.arange(STATES)]).all()


def test_policies_together_are_as_alone(model):
    for policy, values in zip(POLICIES, model.values_of(POLICIES, 5, 0.9), strict=True):
        assert (values.v == model.values(policy, 5, 0.9).v).all()


def test_look_ups_beyond_the_tables_are_refused(model):
    values = model.values(Uniform(2), 3, 0.9)
    with pytest.raises(op.OffPolicyError, match="steps 0 to 2"):
        values.v_hat(CELLS, 3)
    with pytest.raises(op.OffPolicyError, match="row 1: action 2 "):
        values.q_hat(CELLS, np.array([0, 2, 0]), 0)
    with pytest.raises(op.OffPolicyError, match="outside the grid"):
        values.v_hat(np.array([[3]]), 0)


@pytest.mark.parametrize("maximize", [True, False])
def test_optimal_policy_beats_every_deterministic_one(model, maximize):
    best = model.optimal_policy(maximize=maximize)
    reached = model.values(best, 400, 0.9).v[0]
    for code in range(2**STATES):
        table = np.eye(2)[[code >> s & 1 for s in range(STATES)]]
        other = model.values(TabularPolicy(table, GRID), 400, 0.9).v[0]
        assert (reached >= other - 1e-9).all() if maximize else (reached <= other + 1e-9).all()


def test_optimal_policy_keeps_to_what_is_legal(log):
    class Strict(TinyDomain):
        def legal(self, states):
            allowed = np.ones((len(states), 2), dtype=bool)
            allowed[states[:, 0] == 1, 0] = False
            allowed[states[:, 0] == 2] = False  # nobody acts there
            return allowed

    for maximize in (True, False):
        table = Tabular(aggregate=GRID).fit(log, Strict()).optimal_policy(maximize=maximize).table
        assert table[1].tolist() == [0, 1]
        assert (table.sum(axis=1) == 1).all()


def test_without_a_discount_the_horizon_serves(log):
    class Undiscounted(TinyDomain):
        discount = 1.0

    fitted = Tabular(aggregate=GRID).fit(log, Undiscounted())
    assert (fitted.optimal_policy().table == fitted.optimal_policy(discount=0.8).table).all()
    with pytest.raises(op.UsageError, match="below 1"):
        fitted.optimal_policy(discount=1.0)


def test_grid_centers_keep_the_type_of_whole_states(model):
    asked = []

    def policy(states, step):
        asked.append(states.dtype)
        return np.full((len(states), 2), 0.5)

    model.values(FromCallable(policy), 2, 1.0)
    assert asked[0] == np.int64
