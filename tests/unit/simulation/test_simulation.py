"""Logs of simulated domains."""

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from offpolicy.policies import FromCallable, Uniform
from offpolicy.protocols import Domain
from offpolicy.simulation.rollouts import BLOCK, blocks, draw, simulate
from offpolicy.testing import Walk


class Counter(Domain):
    """Counts up from a random number below 3; action 1 ends the episode."""

    name, state_columns, actions, horizon, discount, reward_range = "counter", ("x", "y"), 2, 4, 1.0, (0.0, 9.0)

    @property
    def behavior(self):
        return Uniform(2)

    def reset(self, n, rng):
        return np.stack([rng.integers(0, 3, n), np.zeros(n, dtype=int)], axis=1).astype(float)

    def step(self, states, actions, rng):
        return states + 1, states.sum(axis=1), actions == 1


def test_columns_and_types():
    log = Counter().simulate(Uniform(2), 3, seed=1)
    assert log.schema == {
        "episode": pl.Int64,
        "step": pl.Int32,
        "x": pl.Float64,
        "y": pl.Float64,
        "action": pl.Int32,
        "reward": pl.Float64,
        "behavior_prob": pl.Float64,
        "terminal": pl.Boolean,
        "next_x": pl.Float64,
        "next_y": pl.Float64,
    }


def test_rows_are_what_the_domain_did():
    log = Counter().simulate(Uniform(2), 500, seed=2)
    assert log["episode"].unique().to_list() == list(range(500))
    assert (log["next_x"] == log["x"] + 1).all()
    assert (log["next_y"] == log["y"] + 1).all()
    assert (log["y"] == log["step"]).all()
    assert (log["reward"] == log["x"] + log["y"]).all()
    assert (log["terminal"] == (log["action"] == 1)).all()
    assert (log["behavior_prob"] == 0.5).all()


def test_an_episode_ends_at_the_horizon_or_when_the_domain_says():
    log = Counter().simulate(Uniform(2), 500, seed=3)
    each = log.group_by("episode", maintain_order=True).agg(
        pl.len(), pl.col("terminal").last(), pl.col("terminal").sum().alias("ends")
    )
    assert each["len"].max() == 4
    assert each.filter(pl.col("len") < 4)["terminal"].all()
    assert (each["ends"] == each["terminal"].cast(int)).all()
    by_horizon = each.filter(~pl.col("terminal"))
    assert by_horizon.height > 0
    assert (by_horizon["len"] == 4).all()


def test_the_next_state_is_the_state_of_the_next_row():
    log = Walk().simulate(Walk().behavior, 200, seed=4)
    inside = log.filter(pl.col("episode") == pl.col("episode").shift(-1)).height
    follow = log.with_columns(then=pl.col("place").shift(-1).over("episode")).filter(pl.col("then").is_not_null())
    assert follow.height == inside
    assert (follow["then"] == follow["next_place"]).all()


def test_a_seed_gives_one_log():
    first, again, other = (Walk().simulate(Walk().behavior, 50, seed=seed) for seed in (7, 7, 8))
    assert first.equals(again)
    assert not first.equals(other)


def test_a_log_in_blocks_is_the_whole_log_and_begins_alike():
    n = 2 * BLOCK + 5
    parts = list(blocks(Counter(), Uniform(2), n, seed=9))
    whole = simulate(Counter(), Uniform(2), n, seed=9)
    assert [part["episode"].n_unique() for part in parts] == [BLOCK, BLOCK, 5]
    assert pl.concat(parts).equals(whole)
    assert whole["episode"].unique().to_list() == list(range(n))
    assert simulate(Counter(), Uniform(2), BLOCK, seed=9).equals(parts[0])
    drop = pl.exclude("episode")
    assert not parts[0].head(1000).select(drop).equals(parts[1].head(1000).select(drop))
    assert op.check(whole).ok


class Points:
    """Uniform numbers that were chosen."""

    def __init__(self, points):
        self.points = points

    def random(self, shape):
        return np.array(self.points).reshape(shape)


def test_draw_takes_the_first_action_whose_cumulative_probability_exceeds_the_point():
    pi = np.tile([0.25, 0.25, 0.5], (6, 1))
    points = [0.0, 0.2499, 0.25, 0.4999, 0.5, np.nextafter(1, 0)]
    assert draw(pi, Points(points)).tolist() == [0, 0, 1, 1, 2, 2]


def test_draw_never_takes_what_has_no_probability():
    pi = np.array([[0, 1, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.1, 0.9, 0], [1 / 3, 2 / 3, 0], [0.7, 0.3 - 1e-10, 0]])
    for point in (0.0, 0.5, np.nextafter(1, 0)):
        chosen = draw(pi, Points([point] * len(pi)))
        assert (pi[np.arange(len(pi)), chosen] > 0).all()
    rng = np.random.default_rng(1)
    many = rng.dirichlet(np.full(5, 0.1), size=20_000) * (rng.random((20_000, 5)) < 0.6)
    many = many[many.sum(axis=1) > 0.01]
    many /= many.sum(axis=1, keepdims=True)
    chosen = draw(many, rng)
    assert (many[np.arange(len(many)), chosen] > 0).all()


def test_draw_follows_the_probabilities():
    pi = np.tile([0.1, 0.0, 0.6, 0.3], (40_000, 1))
    found = np.bincount(draw(pi, np.random.default_rng(3)), minlength=4) / len(pi)
    assert np.abs(found - pi[0]).max() < 5 * 0.5 / 200


def test_the_value_of_a_simulation_is_the_exact_one():
    walk = Walk()
    for policy in (walk.behavior, walk.policies["eager"]):
        mc = op.evaluate(walk.simulate(policy, 20_000, seed=5), estimators=["mc"], discount=walk.discount)["mc"]
        assert abs(mc.value - walk.exact_values(policy)[1][0, 3]) < 4 * mc.std_error


def test_importance_sampling_of_a_simulated_log_finds_the_target():
    walk, eager = Walk(), Walk().policies["eager"]
    log = walk.simulate(walk.behavior, 20_000, seed=6)
    pi = eager.probabilities(log.select("place").to_numpy(), log["step"].to_numpy())
    log = log.with_columns(target_prob=pi[np.arange(log.height), log["action"].to_numpy()])
    found = op.evaluate(log, estimators=["step-is"], discount=walk.discount)["step-is"]
    assert abs(found.value - walk.exact_values(eager)[1][0, 3]) < 4 * found.std_error


class Truncating(Counter):
    """Begins with whole numbers and goes on with fractions."""

    def reset(self, n, rng):
        return np.zeros((n, 2), dtype=int)

    def step(self, states, actions, rng):
        return states + 0.5, np.zeros(len(states)), actions == 1


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Counter().simulate(Uniform(2), 0, seed=1), "episodes must be a whole number of at least 1, not 0"),
        (lambda: Counter().simulate(Uniform(2), 1, seed=-1), "seed must be a whole number of at least 0, not -1"),
        (lambda: Truncating().simulate(Uniform(2), 1, seed=1), "begins with states of int64 and goes on with float64"),
        (
            lambda: Counter().simulate(FromCallable(lambda s, t: np.full((len(s), 2), 0.4)), 1, seed=1),
            "add to 0.8, not 1",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make, says):
    with pytest.raises(op.OffPolicyError, match=says):
        make()


def test_a_policy_that_is_no_policy_is_refused_before_it_acts():
    class Half:
        def probabilities(self, states, step):
            return np.full((len(states), 2), 0.25)

    with pytest.raises(op.OffPolicyError, match=r"of row 0 add to 0\.5, not 1"):
        Counter().simulate(Half(), 3, seed=1)
