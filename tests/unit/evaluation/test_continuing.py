"""What a task that goes on earns after the horizon: γ^H r / (1 − γ) bounds it."""

from fractions import Fraction
from itertools import product

import offpolicy as op
import polars as pl
import pytest
from cli import offpolicy
from logs import bounded_log
from offpolicy.testing import Walk

GAMMA, HORIZON = Fraction(3, 4), 4
#: A chain that moves to either of its two states with probability 1/2, and what it earns there.
REWARDS = (Fraction(-1), Fraction(2))


def chain_log():
    """All 2^H paths from state 0, which are equally likely: the mean return of the log is the exact H-step value."""
    paths = [(0, *rest) for rest in product((0, 1), repeat=HORIZON - 1)]
    rows = [(i, t, float(REWARDS[s])) for i, path in enumerate(paths) for t, s in enumerate(path)]
    return pl.DataFrame(rows, schema=["episode", "step", "reward"], orient="row")


def infinite_value():
    """V(0) of V(s) = r(s) + γ (V(0) + V(1)) / 2, whose mean over states is m = r̄ / (1 − γ)."""
    mean = sum(REWARDS) / 2 / (1 - GAMMA)
    return REWARDS[0] + GAMMA * mean


def evaluate(log, **arguments):
    given = {"discount": float(GAMMA), "horizon": HORIZON, "bounds": op.Bounds(reward=(-1, 2)), "continuing": True}
    return op.evaluate(log, **given | arguments)


def test_the_infinite_value_of_a_chain_is_within_the_bias_of_its_horizon():
    ev = evaluate(chain_log(), estimators=["mc"])
    low, high = ev.horizon_bias
    assert (low, high) == (float(-(GAMMA**HORIZON) / (1 - GAMMA)), float(2 * GAMMA**HORIZON / (1 - GAMMA)))
    beyond = infinite_value() - Fraction(ev["mc"].value)
    assert low < beyond < high
    assert beyond == pytest.approx(float(GAMMA**HORIZON * sum(REWARDS) / 2 / (1 - GAMMA)))


@pytest.mark.parametrize("reward", [-1.0, 2.0])
def test_the_bias_is_reached_by_the_least_and_the_largest_reward(reward):
    ev = evaluate(chain_log().with_columns(reward=reward), estimators=["mc"])
    beyond = reward / (1 - 0.75) - ev["mc"].value
    assert beyond == pytest.approx(ev.horizon_bias[0 if reward < 0 else 1], rel=1e-12)


def test_an_episode_that_may_end_adds_nothing_so_that_the_range_holds_0():
    log = bounded_log(1, 20, HORIZON, ragged=False)
    assert evaluate(log, bounds=op.Bounds(reward=(0.5, 1))).horizon_bias[0] == 0
    fixed = evaluate(log, bounds=op.Bounds(reward=(0.5, 1), fixed_length=True))
    assert fixed.horizon_bias == pytest.approx((0.5 * 0.75**4 / 0.25, 0.75**4 / 0.25), rel=1e-12)


def test_the_bias_is_told_with_the_result():
    ev = evaluate(chain_log())
    assert ev.to_dict()["horizon_bias"] == list(ev.horizon_bias)
    assert ev.to_dict()["settings"]["continuing"] is True
    assert any("goes on after 4 steps" in note and "-1.27 to 2.53" in note for note in ev.notes)
    plain = evaluate(chain_log(), continuing=False)
    assert plain.horizon_bias is None
    assert plain.to_dict()["horizon_bias"] is None
    assert not any("goes on" in note for note in plain.notes)


def test_a_reduced_horizon_has_the_bias_of_its_own_length():
    log = chain_log().with_columns(terminal=False).filter((pl.col("episode") > 0) | (pl.col("step") < 3))
    ev = evaluate(log, truncation="reduce-horizon", estimators=["mc"])
    assert ev.horizon_bias[1] == pytest.approx(2 * 0.75**3 / 0.25)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"discount": 1.0}, "continuing=True needs a discount below 1, not 1"),
        ({"bounds": None}, r"continuing=True needs bounds=Bounds\(reward=...\)"),
        ({"continuing": "yes"}, "continuing must be one of True, False, not 'yes'"),
    ],
)
def test_what_cannot_be_bounded_is_refused(wrong, says):
    with pytest.raises(op.UsageError, match=says):
        evaluate(chain_log(), **wrong)


def test_cross_fitting_tells_it_too():
    walk = Walk()
    log = walk.simulate(walk.behavior, 60, seed=1)
    arguments = {"policy": walk.policies["eager"], "estimators": ["dr"], "continuing": True}
    cf = op.cross_fit(log, walk, discount=0.5, **arguments)
    least, most = walk.reward_range
    after = 0.5**walk.horizon / (1 - 0.5)
    assert cf.evaluation.horizon_bias == (least * after, most * after)
    assert cf.to_dict()["horizon_bias"] == [least * after, most * after]
    with pytest.raises(op.UsageError, match="discount below 1"):
        op.cross_fit(log, walk, discount=1.0, **arguments)


def test_the_command_tells_it_too(tmp_path):
    path = tmp_path / "log.parquet"
    chain_log().write_parquet(path)
    given = ("evaluate", path, "--continuing", "--discount", "0.75")
    found = offpolicy(*given, "--reward-range", "-1,2", "--json")
    assert found.document["horizon_bias"] == [-1.265625, 2.53125]
    assert "goes on after 4 steps" in offpolicy(*given, "--reward-range", "-1,2").out
    refused = offpolicy(*given)
    assert refused.code == 2
    assert "--continuing needs --reward-range" in refused.err
