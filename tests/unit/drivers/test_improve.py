"""Safe improvement: the highest lower bound wins, or nobody; the bounds are those of slow and exact sums.

What a winner is worth, in logs of problems whose values are known, is in `test_improve_choices.py`.
"""

import math
from fractions import Fraction

import numpy as np
import offpolicy as op
import polars as pl
import pytest
import reference
from improving import EAGER, FEW, LOG, MANY, POLICIES, SMALL, WALK, Proposing, always, by_policies, eligible, scores
from logs import episodes_of
from offpolicy.drivers.mixtures import Mixtures
from offpolicy.folds import share_of
from offpolicy.policies import Mixture as Mixed

CAUTIONS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0)


HALF, NEAR = POLICIES["half"], Mixed(EAGER, WALK.behavior, 0.9)


@pytest.mark.parametrize(("against", "column"), [("difference", "gain"), ("value", "value")])
def test_without_caution_the_best_point_estimate_wins(against, column):
    best = op.improve(MANY, WALK, generator=SMALL, caution=0.0, against=against)
    assert best.candidates["score"].to_list() == best.candidates[column].to_list()
    ordered = best.candidates.sort(column, descending=True)["candidate"]
    assert best.winner == eligible(best)[0] == next(name for name in ordered if name in eligible(best))


@pytest.mark.parametrize("against", ["difference", "value"])
def test_with_more_caution_no_score_grows_and_what_was_turned_down_stays_so(against):
    found = [by_policies(MANY, caution=caution, against=against) for caution in CAUTIONS]
    known = [{name: -math.inf if score is None else score for name, score in scores(best).items()} for best in found]
    above = [
        {name for name, score in each.items() if score > best.threshold}
        for each, best in zip(known, found, strict=True)
    ]
    for i in range(1, len(found)):
        before, after = known[i - 1], known[i]
        assert all(after[name] <= before[name] for name in POLICIES)
        assert found[i].highest["score"] <= found[i - 1].highest["score"]
        assert above[i] <= above[i - 1]
        assert found[i].winner == "behavior" or found[i - 1].winner != "behavior"
    winners = [best.winner for best in found]
    assert winners[0] != "behavior"
    assert winners[-1] == "behavior"
    assert len(set(winners)) >= 2


@pytest.mark.parametrize("against", ["difference", "value"])
def test_the_behaviour_policy_stays_unless_a_bound_is_above_its_value(against):
    kept = op.improve(LOG, WALK, generator={"same": WALK.behavior}, estimator="step-is", caution=0.0, against=against)
    assert scores(kept) == {"same": kept.threshold}  # as good, and not better
    assert kept.threshold == (0.0 if against == "difference" else kept.behavior.value)
    assert kept.winner == "behavior"
    assert kept.policy == WALK.behavior
    assert kept.verdict is None
    assert kept.conclusion.startswith("keep the behaviour policy")


@pytest.mark.parametrize("caution", [0.0, 1.0])
def test_the_behaviour_policy_among_the_candidates_gains_nothing_whatever_rounding_leaves(caution):
    for floor in (-1 / 3, -700.1):  # rewards are counted from there, and X is not G to the last bit
        setting = WALK.__class__(reward_range=(floor, 1.0))
        best = op.improve(LOG, setting, generator={"same": WALK.behavior}, estimator="step-is", caution=caution)
        row = best.candidates.row(0, named=True)
        assert (row["gain"], row["gain_error"], best.winner) == (0.0, 0.0, "behavior")


def test_bad_policies_are_turned_down():
    worst = Mixtures(splits=(0.3, 0.6), alphas=(0.0, 0.5), maximize=False)
    assert op.improve(LOG, WALK, generator=worst, caution=2.0).winner == "behavior"
    assert op.improve(LOG, WALK, generator=SMALL, caution=2.0).winner != "behavior"


def test_of_equal_scores_the_first_wins():
    twice = {"second": HALF, "first": HALF}
    best = op.improve(LOG, WALK, generator=twice, estimator="step-is")
    assert best.winner == "second"
    assert best.candidates["rank"].to_list() == [1, 2]


def test_the_winner_can_be_deployed():
    best = by_policies()
    assert best.policy is POLICIES[best.winner]
    truth = WALK.exact_values(best.policy)[1][0, 3]
    assert truth > WALK.exact_values(WALK.behavior)[1][0, 3]


def exact_model(episodes):
    """R̂ and P̂ of the tabular model in rationals; a pair never seen earns the least and leads back to itself."""
    rewards, moves = {}, {}
    for row in (row for episode in episodes for row in episode):
        pair = row["place"], row["action"]
        rewards.setdefault(pair, []).append(Fraction(row["reward"]))
        moves.setdefault(pair, []).append(None if row["terminal"] else row["next_place"])
    return rewards, moves


def exact_values(model, policy):
    """Q̂ and V̂ by step, place and action."""
    rewards, moves = model
    gamma, least = Fraction(WALK.discount), Fraction(WALK.reward_range[0])
    places = range(7)
    q, v = {}, {(WALK.horizon, place): Fraction(0) for place in places}
    for t in reversed(range(WALK.horizon)):
        pi = policy.probabilities(np.array(places)[:, None], t)
        for place in places:
            for action in range(3):
                seen = rewards.get((place, action))
                reward = sum(seen) / len(seen) if seen else least
                after = moves.get((place, action), [place])
                total = sum((v[t + 1, then] for then in after if then is not None), Fraction(0))
                q[t, place, action] = reward + gamma * total / len(after)
            v[t, place] = sum(Fraction(pi[place, action]) * q[t, place, action] for action in range(3))
    return q, v


def paired(values, returns):
    """D̄ and σ_D of the values of trajectories less their returns, from rationals."""
    d = [x - g for x, g in zip(values, returns, strict=True)]
    mean = sum(d) / len(d)
    spread = sum((x - mean) ** 2 for x in d) / (len(d) * (len(d) - 1))
    return float(mean), reference.square_root(spread)


def exact_estimate(policy, fraction, estimator):
    """V and σ on D ∖ D_train of `FEW`, with Q̂ from D_train, by the definitions, and of the gain; `dr-bsl` has R_min."""
    train = [e for e in episodes_of(FEW) if share_of([e[0]["episode"]])[0] < fraction]
    test = [e for e in episodes_of(FEW) if share_of([e[0]["episode"]])[0] >= fraction]
    q, v = exact_values(exact_model(train), policy)
    for row in (row for episode in test for row in episode):
        t, place, action = row["step"], row["place"], row["action"]
        row["target_prob"] = policy.probabilities(np.array([[place]]), t)[0, action]
        row |= {"q_hat": q[t, place, action], "v_hat": v[t, place]}
    exact = reference.evaluate(test, estimator, WALK.discount, horizon=WALK.horizon, baseline=WALK.reward_range[0])
    returns = reference.evaluate(test, "mc", WALK.discount).values
    return len(test), exact, paired(exact.values, returns)


@pytest.mark.parametrize("estimator", ["dr", "step-is", "is"])
@pytest.mark.parametrize("against", ["difference", "value"])
def test_scores_are_those_of_the_definition(estimator, against):
    caution = 1.5
    best = op.improve(FEW, WALK, generator=SMALL, estimator=estimator, caution=caution, against=against)
    policies = {candidate.name: candidate for candidate in SMALL.candidates(FEW, WALK)}
    assert len(policies) == best.number_of_candidates
    for row in best.candidates.iter_rows(named=True):
        candidate = policies[row["candidate"]]
        episodes, exact, (gain, error) = exact_estimate(candidate.policy, candidate.train_fraction, estimator)
        if against == "difference" and estimator == "step-is":  # rewards are as low as -0.05
            gain, error = exact_estimate(candidate.policy, candidate.train_fraction, "dr-bsl")[2]
        assert row["episodes"] == episodes
        assert row["value"] == pytest.approx(float(exact.value), rel=1e-9)
        assert row["std_error"] == pytest.approx(exact.std_error, rel=1e-9)
        assert row["gain"] == pytest.approx(gain, rel=1e-9)
        assert row["gain_error"] == pytest.approx(error, rel=1e-9)
        value, spread = (gain, error) if against == "difference" else (float(exact.value), exact.std_error)
        assert row["score"] == pytest.approx(value - caution * spread, rel=1e-9)
    own = reference.evaluate(episodes_of(FEW), "mc", WALK.discount)
    assert best.behavior.value == pytest.approx(float(own.value), rel=1e-12)
    assert best.behavior.std_error == pytest.approx(own.std_error, rel=1e-12)
    assert best.behavior.bound == pytest.approx(float(own.value) - caution * own.std_error, rel=1e-12)
    assert best.behavior.episodes == 30


def test_policies_without_a_split_get_half_of_the_log_for_their_model():
    best = op.improve(FEW, WALK, generator={"half": HALF}, estimator="dr", caution=1.0)
    episodes, exact, _ = exact_estimate(HALF, 0.5, "dr")
    row = best.candidates.row(0, named=True)
    assert (row["train_fraction"], row["episodes"]) == (0.5, episodes)
    assert row["value"] == pytest.approx(float(exact.value), rel=1e-9)


def test_a_weightless_estimator_of_given_policies_uses_the_whole_log():
    row = by_policies().candidates.row(0, named=True)
    assert (row["train_fraction"], row["episodes"]) == (0.0, 120)


@pytest.mark.parametrize("estimator", ["dr-bsl", "dr-v2"])
def test_every_estimator_that_averages_will_do(estimator):
    best = op.improve(MANY, WALK, generator=SMALL, estimator=estimator, baseline=0.1)
    assert best.candidates["score"].null_count() == 0
    assert best.winner != "behavior"


@pytest.mark.parametrize(
    ("estimator", "why"),
    [
        ("wis", "ratios of sums"),
        ("step-wis", "ratios of sums"),
        ("wdr", "ratios of sums"),
        ("magic", "ratios of sums"),
        ("mc", "value of the behaviour policy"),
        ("reg", "model's bias"),
        ("step-si", "did you mean 'step-is'"),
    ],
)
def test_other_estimators_are_refused_with_the_reason(estimator, why):
    with pytest.raises(op.UsageError, match=why):
        op.improve(LOG, WALK, estimator=estimator)


def test_a_candidate_that_the_log_never_follows_has_no_score():
    right = LOG.with_columns(reward=pl.lit(-1.0), action=pl.lit(2, pl.Int32))  # every step costs, and goes right
    best = op.improve(right, WALK, generator={"left": always(0), "right": always(2)}, estimator="step-is", caution=0.0)
    left, right = best.candidates.iter_rows(named=True)
    assert left["value"] == 0.0 > best.behavior.value
    assert (left["score"], left["rank"]) == (None, None)
    assert "every weight of policy 'left' is zero from t = 1" in left["reason"]
    assert right["rank"] == 1
    assert best.winner != "left"


def test_candidates_of_a_split_with_too_few_episodes_are_listed_with_the_reason():
    shares = dict(zip(LOG["episode"].unique(), share_of(LOG["episode"].unique()), strict=True))
    last = max(shares.values())
    found = [
        op.Candidate("all", NEAR, last + 1e-9),
        op.Candidate("all but one", NEAR, last - 1e-9),
        op.Candidate("none", NEAR, 1e-9),
        op.Candidate("half", NEAR, 0.5),
    ]
    best = op.improve(LOG, WALK, generator=Proposing(found), estimator="step-is")
    reasons = dict(best.candidates.select("candidate", "reason").rows())
    assert "to evaluate on" in reasons["all"]
    assert "single trajectory" in reasons["all but one"]
    assert "to train on" in reasons["none"]
    assert reasons["half"] is None
    assert best.candidates["episodes"].to_list()[:3] == [0, 1, 0]
    assert best.candidates["rank"].to_list() == [None, None, None, 1]
    assert best.number_of_candidates == 4
