"""What `improve` recommends, over many logs of problems whose values are known."""

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from improving import MANY, POLICIES, SMALL, WALK, eligible
from offpolicy.policies import TabularPolicy

GRID = op.Grid((1,))
LOGGED, REWARDS, STEPS = np.array([0.45, 0.45, 0.1]), np.array([1.0, -1.0, -0.01]), 5
THREE = op.LoggedDomain(state_columns=("state",), actions=3, horizon=STEPS, reward_range=(-1.0, 1.0))
TABULAR = op.fitter("tabular", aggregate=GRID)


def three_actions(seed, episodes=200, rewards=REWARDS):
    """A log of one state and three actions, whose rewards are known from a few episodes."""
    rng = np.random.default_rng(seed)
    action = rng.choice(3, size=episodes * STEPS, p=LOGGED)
    return pl.DataFrame(
        {
            "episode": np.repeat(np.arange(episodes), STEPS),
            "step": np.tile(np.arange(STEPS), episodes),
            "state": 0,
            "action": action,
            "reward": np.asarray(rewards)[action],
            "behavior_prob": LOGGED[action],
            "terminal": np.tile(np.arange(STEPS) == STEPS - 1, episodes),
        }
    )


def taken(pi, logs, rewards=REWARDS, **options):
    """In how many logs the policy with these probabilities is recommended."""
    policy = {"new": TabularPolicy(np.array([pi]), GRID)}
    found = [
        op.improve(three_actions(seed, rewards=rewards), THREE, generator=policy, fitter=TABULAR, **options)
        for seed in range(logs)
    ]
    return sum(best.winner == "new" for best in found), found


WORSE = (0.05, 0.05, 0.9)


def test_a_worse_policy_is_not_recommended_because_the_logged_one_had_bad_luck():
    """Its value is -0.045 and that of π0 -0.005; the model knows both, and the mean return is off by 0.1 or so."""
    assert 5 * np.dot(WORSE, REWARDS) == pytest.approx(-0.045)
    assert 5 * np.dot(LOGGED, REWARDS) == pytest.approx(-0.005)
    logs = 30
    _, found = taken(WORSE, logs, estimator="dr", caution=3.0, against="value")
    bounds = [best.candidates["score"].item() > best.behavior.value for best in found]
    assert sum(bounds) >= logs / 4  # where the verdict does not keep π0, the paper's rule takes it
    near = (0.4, 0.41, 0.19)  # as bad, -0.0595, and near enough to π0 for any verdict
    paper, _ = taken(near, logs, estimator="dr", caution=3.0, against="value")
    assert paper >= logs / 4
    for pi in (WORSE, near):
        for estimator in ("dr", "step-is"):
            count, found = taken(pi, logs, estimator=estimator, caution=3.0)
            assert count == 0
            assert sum(best.candidates["score"].item() > 0 for best in found) <= 1


def test_a_small_gain_shows_where_it_is_paired():
    """A true gain of 0.06 that the noise of either value hides."""
    pi, logs = (0.456, 0.444, 0.1), 30
    assert 5 * np.dot(np.subtract(pi, LOGGED), REWARDS) == pytest.approx(0.06)
    alone, _ = taken(pi, logs, estimator="step-is", caution=3.0, against="value")
    together, _ = taken(pi, logs, estimator="step-is", caution=3.0)
    assert alone <= 1
    assert together >= logs - 1


def test_rewards_that_are_costs_are_counted_from_the_lowest():
    """With plain step-is a policy whose weights vanish looks as if it had spared the costs."""
    costs = (-1.0, -0.2, -1.0)
    far, logs = (0.1, 0.05, 0.85), 20
    assert np.dot(far, costs) < np.dot(LOGGED, costs)
    _, plain = taken(far, logs, rewards=costs, estimator="step-is", caution=2.0, against="value")
    assert sum(best.candidates["score"].item() > best.behavior.value for best in plain) >= logs / 4
    count, found = taken(far, logs, rewards=costs, estimator="step-is", caution=2.0)
    assert count == 0
    assert sum(best.candidates["score"].item() > 0 for best in found) <= 1
    note = "rewards can be as low as -1, so that the gain of step-is is made of rewards counted from there"
    assert all(any(text.startswith(note) for text in best.notes) for best in found)
    assert not any("counted from" in text for best in plain for text in best.notes)


def test_rewards_that_are_no_costs_are_taken_as_they_are():
    gains = op.LoggedDomain(state_columns=("state",), actions=3, horizon=STEPS, reward_range=(0.0, 1.0))
    log = three_actions(1, rewards=(1.0, 0.0, 0.5))
    policy = {"new": TabularPolicy(np.array([WORSE]), GRID)}
    best = op.improve(log, gains, generator=policy, estimator="step-is")
    scored = op.annotate(log, policy["new"], columns=op.Columns(state=("state",)))
    gain = op.evaluate(scored, horizon=STEPS, estimators=["step-is"], paired=True).difference(
        "target", "behavior", estimator="step-is"
    )
    assert best.candidates["gain"].item() == gain.value
    assert best.notes == []


@pytest.mark.parametrize("require", ["fragile", "reliable"])
def test_the_best_of_those_whose_verdict_is_good_enough_wins(require):
    best = op.improve(MANY, WALK, generator=SMALL, estimator="dr", caution=1.0, require=require)
    enough = ("reliable", "fragile") if require == "fragile" else ("reliable",)
    assert best.require == require
    assert best.winner == eligible(best)[0]
    assert best.verdict.level in enough
    for row in best.candidates.iter_rows(named=True):
        why = f"its verdict is worse than {require!r}, which is required"
        assert row["reason"] == (None if row["verdict"] in enough else why)
        assert row["rank"] is not None
    assert best.highest["verdict"] not in enough
    assert best.highest["score"] > best.candidates.filter(pl.col("candidate") == best.winner)["score"].item()
    assert "take" in best.conclusion
    assert "unusable" not in best.conclusion
    (note,) = (text for text in best.notes if "higher bound" in text)
    assert note.startswith(f"{best.highest['candidate']!r} has a higher bound and is not taken, for its verdict is ")


def test_an_unusable_verdict_keeps_the_behaviour_policy_whatever_the_bound():
    best = op.improve(MANY.filter(pl.col("episode") < 100), WALK, generator={"eager": POLICIES["eager"]}, caution=0.0)
    assert best.candidates["score"].item() > 0
    assert (best.winner, best.verdict, best.barred.level) == ("behavior", None, "unusable")
    score = f"{best.candidates['score'].item():.4g}"
    said = (
        f"keep the behaviour policy: the highest bound is that of 'eager' with gain - 0σ = {score}, but its verdict is "
    )
    assert best.conclusion == f"{said}{best.barred}"
    assert not best.conclusion.startswith("take")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"against": "values"}, "against must be one of 'difference', 'value', not 'values'"),
        ({"require": "unusable"}, "require must be one of 'fragile', 'reliable', not 'unusable'"),
        ({"require": None}, "require must be one of 'fragile', 'reliable', not None"),
    ],
)
def test_other_rules_and_verdicts_are_refused(options, message):
    with pytest.raises(op.UsageError, match=message):
        op.improve(MANY, WALK, generator=SMALL, **options)
