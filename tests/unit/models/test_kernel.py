"""Kernel smoothing and models against sums over all neighbours, cell by cell, and dense dynamic programming."""

import itertools
import math

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from offpolicy.models.fitters.kernel import Kernel
from offpolicy.models.smoothing import smooth
from offpolicy.policies import FromCallable, Mixture, TabularPolicy, Uniform

SHAPES = {
    "sailing": ((5, 6, 8, 8, 8), (False, False, True, True, True)),
    "one": ((7,), (False,)),
    "ring": ((7,), (True,)),
    "rings of two and three": ((2, 3, 4), (True, True, True)),
    "single cells": ((1, 4, 1, 3), (True, True, False, False)),
    "first goes round": ((6, 5, 3), (True, False, True)),
    "seven coordinates": ((3, 2, 4, 1, 3, 2, 3), (False, True, True, False, True, False, False)),
}


def matrix(shape, kinds, bandwidth):
    """K(c, c') from its definition: distances of coordinates, around where they go round, cut off above 1."""
    squares, near = np.zeros((math.prod(shape),) * 2), np.ones((math.prod(shape),) * 2, dtype=bool)
    for n, kind, cell in zip(shape, kinds, np.indices(shape).reshape(len(shape), -1), strict=True):
        d = np.abs(cell[:, None] - cell)
        d = np.minimum(d, n - d) if kind == "circle" else d
        near &= d <= (0 if kind == "apart" else 1)
        squares += d**2
    return np.where(near, np.exp(-np.sqrt(squares) / bandwidth), 0.0)


def neighbour_sum(x, circular, bandwidth):
    """The 3^D neighbours, one shifted array each."""
    total = np.zeros_like(x)
    for shift in itertools.product((-1, 0, 1), repeat=x.ndim):
        index, weight = np.indices(x.shape), np.full(x.shape, math.exp(-math.sqrt(sum(map(abs, shift))) / bandwidth))
        for i, (n, wraps) in enumerate(zip(x.shape, circular, strict=True)):
            index[i] += shift[i]
            if wraps:
                index[i] %= n
            weight[(index[i] < 0) | (index[i] >= n)] = 0.0
            index[i] = np.clip(index[i], 0, n - 1)
        # On a ring of one or two cells, steps in both directions lead to the same cell: it counts once.
        around = [(d, n) for d, n, wraps in zip(shift, x.shape, circular, strict=True) if wraps]
        if not any((n == 1 and d != 0) or (n == 2 and d < 0) for d, n in around):
            total += weight * x[tuple(index)]
    return total


@pytest.mark.parametrize("bandwidth", [0.25, 0.05, 3.0])
@pytest.mark.parametrize("name", SHAPES)
def test_smoothing_is_the_sum_over_neighbours(name, bandwidth):
    shape, circular = SHAPES[name]
    x = np.random.default_rng(1).normal(size=shape)
    mass = neighbour_sum(np.abs(x), circular, bandwidth)
    assert (np.abs(smooth(x, circular, bandwidth) - neighbour_sum(x, circular, bandwidth)) <= 1e-12 * mass).all()


def test_sparse_counts_keep_their_relative_accuracy():
    shape, circular = SHAPES["sailing"]
    rng = np.random.default_rng(2)
    counts = rng.integers(0, 3, size=shape) * (rng.random(shape) < 0.01)
    exact = neighbour_sum(counts.astype(float), circular, 0.25)
    assert np.array_equal(smooth(counts, circular) == 0, exact == 0)
    assert smooth(counts, circular) == pytest.approx(exact, rel=1e-12, abs=0)


def test_many_arrays_at_once_are_each_on_its_own():
    x = np.random.default_rng(3).normal(size=(4, 5, 6))
    together = smooth(x, circular=(True, False))
    assert np.array_equal(together, np.stack([smooth(one, circular=(True, False)) for one in x]))


@pytest.mark.parametrize(
    ("array", "circular", "bandwidth", "message"),
    [
        (np.ones(3), (False, False), 0.25, "1 coordinates cannot be smoothed along 2"),
        (np.array([1.0, np.nan]), (), 0.25, "must be finite"),
        (np.ones(3), (), 0.0, "bandwidth must be above 0"),
        (np.ones((0, 3)), (), 1.0, "at least one"),
    ],
)
def test_what_cannot_be_smoothed(array, circular, bandwidth, message):
    with pytest.raises(op.OffPolicyError, match=message):
        smooth(array, circular, bandwidth)


# A small world: a bounded and a circular coordinate, three actions, some never tried, episodes that end or are cut.
GRID = op.Grid((3, 4), circular=(False, True))
SETTING = op.LoggedDomain(state_columns=("x", "y"), actions=3, horizon=6, reward_range=(-2.0, 1.0), discount=0.9)
CELLS = GRID.cells


def world_log(episodes=12, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for episode in range(episodes):
        x, y = rng.integers(2), rng.integers(3)
        for step in range(6):
            x2, y2, action = min(int(x + rng.integers(2)), 2), int(y + rng.integers(2)) % 4, int(rng.integers(2))
            done = bool(rng.random() < 0.15)
            rows.append((episode, step, x, y, action, float(rng.normal()), done, x2, y2))
            x, y = x2, y2
            if done:
                break
    names = ["episode", "step", "x", "y", "action", "reward", "terminal", "next_x", "next_y"]
    return pl.DataFrame(rows, schema=names, orient="row")


def dense(log, kinds, bandwidth, unseen):
    """R̂ (pairs) and P̂ (pairs, cells) as sums over samples, one sample at a time; a next state may be unknown."""
    kernel = matrix((*GRID.size, 3), kinds, bandwidth)
    pairs = CELLS * 3
    count, known, reward, transition = np.zeros(pairs), np.zeros(pairs), np.zeros(pairs), np.zeros((pairs, CELLS))
    for row in log.iter_rows(named=True):
        weight = kernel[:, (row["x"] * 4 + row["y"]) * 3 + row["action"]]
        count += weight
        reward += weight * row["reward"]
        if row["terminal"] or row["next_x"] is not None:
            known += weight
        if not row["terminal"] and row["next_x"] is not None:
            transition[:, row["next_x"] * 4 + row["next_y"]] += weight
    reward = np.where(count > 0, reward / np.where(count > 0, count, 1), unseen)
    stay = np.eye(CELLS).repeat(3, axis=0)
    transition = np.where(known[:, None] > 0, transition / np.where(known > 0, known, 1)[:, None], stay)
    return reward, transition, count > 0


def dense_values(reward, transition, pi, horizon, discount):
    """(V^0, …, V^H), (Q^0, …, Q^H); pi(step) is (cells, actions)."""
    v, q = [np.zeros(CELLS)], [np.zeros((CELLS, 3))]
    for h in range(1, horizon + 1):
        q.append((reward + discount * transition @ v[-1]).reshape(CELLS, 3))
        v.append((pi(horizon - h) * q[-1]).sum(axis=1))
    return np.array(v), np.array(q)


def some_policies():
    rng = np.random.default_rng(9)
    by_step = rng.dirichlet(np.ones(3), size=(6, CELLS))
    fixed = TabularPolicy(rng.dirichlet(np.ones(3), size=CELLS), GRID)
    return [
        Uniform(3),
        fixed,
        Mixture(fixed, Uniform(3), 0.3),
        TabularPolicy(by_step, GRID),
        FromCallable(lambda states, step: by_step[step, GRID.index(states)]),
    ]


@pytest.mark.parametrize("actions", ["line", "circle", "apart"])
@pytest.mark.parametrize("episodes", [1, 12])
def test_values_are_those_of_the_dense_model(actions, episodes):
    log = world_log(episodes)
    model = Kernel(bandwidth=0.5, grid=GRID, actions=actions).fit(log, SETTING)
    reward, transition, seen = dense(log, ("line", "circle", actions), 0.5, unseen=-2.0)
    assert seen.all() == (episodes == 12 and actions != "apart")  # pairs without mass are tested too
    assert model.r_hat.ravel() == pytest.approx(reward, rel=1e-12)
    states = GRID.centers(np.arange(CELLS))
    policies = some_policies()
    together = model.values_of(policies, 6, 0.9)
    for policy, found in zip(policies, together, strict=True):
        v, q = dense_values(reward, transition, lambda t, p=policy: p.probabilities(states, t), 6, 0.9)
        alone = model.values(policy, 6, 0.9)
        for step in range(7):
            assert found.v_hat(states, step) == pytest.approx(v[6 - step], rel=1e-12, abs=1e-13)
            assert np.array_equal(found.v_hat(states, step), alone.v_hat(states, step))
            for a in range(3):
                exact = q[6 - step, :, a]
                assert found.q_hat(states, np.full(CELLS, a), step) == pytest.approx(exact, rel=1e-12, abs=1e-13)


def test_rows_of_different_steps_are_answered_together():
    values = Kernel(grid=GRID).fit(world_log(), SETTING).values(Uniform(3), 6, 0.9)
    rng = np.random.default_rng(4)
    cell, actions, steps = rng.integers(CELLS, size=500), rng.integers(3, size=500), rng.integers(7, size=500)
    states = GRID.centers(cell)
    one_by_one = [values.q_hat(states[i : i + 1], actions[i : i + 1], int(steps[i]))[0] for i in range(500)]
    assert np.array_equal(values.q_hat(states, actions, steps), one_by_one)
    assert np.array_equal(values.r_hat(states, actions), values.model.r_hat[cell, actions])
    assert len(values.q_hat(states[:0], actions[:0], 0)) == 0


def test_v_is_the_mean_of_q():
    policy = some_policies()[1]
    values = Kernel(grid=GRID).fit(world_log(), SETTING).values(policy, 6, 0.9)
    states = GRID.centers(np.arange(CELLS))
    q = np.stack([values.q_hat(states, np.full(CELLS, a), 2) for a in range(3)], axis=1)
    assert (policy.table * q).sum(axis=1) == pytest.approx(values.v_hat(states, 2), rel=1e-12)


def test_where_nothing_was_seen_a_pair_has_the_given_reward_and_stays():
    log = pl.DataFrame({"episode": [0], "step": [0], "x": [0], "y": [0], "action": [0], "reward": [0.5],
                        "terminal": [True], "next_x": [0], "next_y": [0]})  # fmt: skip
    values = Kernel(grid=GRID, unseen_reward=-7.0).fit(log, SETTING).values(Uniform(3), 3, 0.5)
    far, near = np.array([[2, 2]]), np.array([[0, 3]])
    assert values.v_hat(far, 0)[0] == pytest.approx(-7 * (1 + 0.5 + 0.25))
    assert values.r_hat(near, np.array([0]))[0] == pytest.approx(0.5)  # around the circle
    assert values.q_hat(near, np.array([0]), 0)[0] == pytest.approx(0.5)  # and the episode has ended
    assert values.q_hat(near, np.array([1]), 0)[0] == pytest.approx(-7 + 0.5 * values.v_hat(near, 1)[0])


def test_a_last_step_that_was_cut_counts_for_its_reward_only():
    log = world_log().with_columns(terminal=pl.lit(False))
    last = pl.col("step") == pl.col("step").max().over("episode")
    following = [pl.when(~last).then(pl.col(name)).alias(name) for name in ("next_x", "next_y")]
    reward, transition, _ = dense(log.with_columns(following), ("line", "circle", "apart"), 0.25, unseen=-2.0)
    model = Kernel(grid=GRID).fit(log.drop("next_x", "next_y"), SETTING)
    v, _ = dense_values(reward, transition, lambda t: np.full((CELLS, 3), 1 / 3), 6, 0.9)
    assert model.r_hat.ravel() == pytest.approx(reward, rel=1e-12)
    found = model.values(Uniform(3), 6, 0.9)
    assert found.v_hat(GRID.centers(np.arange(CELLS)), 0) == pytest.approx(v[6], rel=1e-12)


def test_batches_and_files_give_the_same_model(tmp_path, monkeypatch):
    log = world_log(200, seed=5)
    whole = Kernel(grid=GRID).fit(log, SETTING)
    monkeypatch.setattr("offpolicy.logs.transitions.BATCH_ROWS", 7)
    log.write_parquet(tmp_path / "log.parquet")
    parts = Kernel(grid=GRID).fit(str(tmp_path / "log.parquet"), SETTING)
    assert parts.r_hat == pytest.approx(whole.r_hat, rel=1e-12)
    states = GRID.centers(np.arange(CELLS))
    values = [model.values(Uniform(3), 6, 0.9).v_hat(states, 0) for model in (whole, parts)]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


@pytest.mark.parametrize("maximize", [True, False])
def test_the_optimal_policy_is_that_of_the_dense_model(maximize):
    log = world_log(20, seed=3)
    legal = np.random.default_rng(8).random((CELLS, 3)) < 0.7
    legal[:, 1] |= ~legal.any(axis=1)

    class Ruled(op.LoggedDomain):
        def legal(self, states):
            return legal[GRID.index(states)]

    setting = Ruled(SETTING.state_columns, 3, 6, SETTING.reward_range, 0.9)
    found = Kernel(bandwidth=0.5, grid=GRID).fit(log, setting).optimal_policy(maximize)
    reward, transition, _ = dense(log, ("line", "circle", "apart"), 0.5, unseen=-2.0)
    sign, v = (1 if maximize else -1), np.zeros(CELLS)
    for _ in range(2000):
        q = np.where(legal, sign * (reward + 0.9 * transition @ v).reshape(CELLS, 3), -np.inf)
        v = sign * q.max(axis=1)
    assert np.array_equal(found.table, np.eye(3)[q.argmax(axis=1)])


def test_of_equal_actions_the_first_is_taken():
    log = world_log().with_columns(reward=pl.lit(-1.0), terminal=pl.lit(False))
    one_step = op.LoggedDomain(SETTING.state_columns, 3, 6, SETTING.reward_range, discount=0.0)
    model = Kernel(grid=GRID, unseen_reward=-1.0).fit(log, one_step)
    assert (model.optimal_policy().table.argmax(axis=1) == 0).all()


def test_values_that_never_settle_are_an_error():
    log = world_log().with_columns(reward=pl.lit(1.0), terminal=pl.lit(False))
    endless = op.LoggedDomain(SETTING.state_columns, 3, 6, (1.0, 1.0), discount=1.0)
    with pytest.raises(op.OffPolicyError, match="do not settle"):
        Kernel(grid=GRID).fit(log, endless).optimal_policy()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Kernel(), "has no grid"),
        (lambda: Kernel(grid=GRID, actions="heap"), "actions must lie in one of line, circle, apart, not 'heap'"),
        (lambda: Kernel(grid=GRID, bandwidth=-1), "bandwidth must be above 0"),
        (lambda: Kernel(grid=GRID, unseen_reward=-math.inf), "unseen_reward must be a finite number"),
    ],
)
def test_fitters_that_make_no_sense(make, message):
    with pytest.raises(op.OffPolicyError, match=message):
        make().fit(world_log(), SETTING)


def test_questions_outside_the_model():
    model = Kernel(grid=GRID).fit(world_log(), SETTING)
    values = model.values(Uniform(3), 6, 0.9)
    here = np.array([[0, 0]])
    with pytest.raises(op.OffPolicyError, match="actions must be from 0 to 2"):
        values.q_hat(here, np.array([3]), 0)
    with pytest.raises(op.OffPolicyError, match="horizon of 6, not 7 to 7"):
        values.v_hat(here, 7)
    with pytest.raises(op.OffPolicyError, match="outside the grid"):
        values.v_hat(np.array([[3, 0]]), 0)
    with pytest.raises(op.UsageError, match="horizon must be a whole number of at least 1"):
        model.values(Uniform(3), 0, 0.9)
    with pytest.raises(op.OffPolicyError, match="must give 3 probabilities"):
        model.values(Uniform(2), 6, 0.9)


def test_the_fitter_is_found_by_name():
    assert op.fitter("kernel", bandwidth=0.5) == Kernel(bandwidth=0.5)
