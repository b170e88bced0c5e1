"""All trajectories of a tiny MDP, with their probabilities: expectations without sampling."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement, product

import offpolicy as op
import polars as pl
import pytest
import reference

H = 3
GAMMA = 0.75
END = 3
START = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]
PI0 = [[Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 4), Fraction(3, 4)], [Fraction(5, 8), Fraction(3, 8)]]
PI1 = [[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 8), Fraction(7, 8)]]
# P[s][a] over the next states 0, 1, 2 and the end; P_HAT is a wrong model of it with the same support.
P = [[[2, 1, 4, 1], [1, 0, 3, 4]], [[1, 5, 2, 0], [4, 2, 1, 1]], [[3, 3, 0, 2], [0, 2, 6, 0]]]
P_HAT = [[[1, 3, 3, 1], [2, 0, 4, 2]], [[3, 4, 1, 0], [1, 1, 2, 4]], [[2, 1, 0, 5], [0, 4, 4, 0]]]
REWARDS = [[(0, 1), (-1, 2)], [(1, 3), (0, 5)], [(2, -2), (1, 4)]]
REWARD_PROB = [Fraction(1, 4), Fraction(3, 4)]


def any_q(t, s, a):
    """An arbitrary wrong Q̂."""
    return Fraction((7 * t + 5 * s + 3 * a) % 11 - 4, 4)


def v_of(q, t, s):
    return sum(PI1[s][a] * q(t, s, a) for a in (0, 1))


def r_hat(s, a):
    return Fraction(s - 2 * a + 1, 2)


def trajectories(t=1, s=None):
    """Pairs of probability under π0 and steps (s, a, r, s')."""
    if t > H or s == END:
        yield Fraction(1), []
        return
    starts = [(START[s], s) for s in range(3)] if s is None else [(Fraction(1), s)]
    for (p_start, state), a, k, following in product(starts, (0, 1), (0, 1), range(4)):
        last = t == H
        p_next = Fraction(P[state][a][following], 8) if not last else Fraction(int(following == END))
        p = p_start * PI0[state][a] * REWARD_PROB[k] * p_next
        if p:
            for p_rest, rest in trajectories(t + 1, following):
                yield p * p_rest, [(state, a, REWARDS[state][a][k], following), *rest]


def rows(steps, q=any_q):
    """A trajectory as rows of a log; every number is a dyadic rational, or a ratio of small integers."""
    out = []
    for t, (s, a, reward, following) in enumerate(steps, start=1):
        observed = t < H and following != END
        change = Fraction(P_HAT[s][a][following], P[s][a][following]) if observed else Fraction(1)
        row = {
            "reward": reward,
            "behavior_prob": PI0[s][a],
            "target_prob": PI1[s][a],
            "q_hat": q(t, s, a),
            "v_hat": v_of(q, t, s),
            "r_hat": r_hat(s, a),
            "transition_ratio": change,
        }
        out.append(row)
    return out


def mean_reward(s, a):
    return sum(p * r for p, r in zip(REWARD_PROB, REWARDS[s][a], strict=True))


def dynamic_programming(reward, transitions):
    """Q of π1 in the MDP with these mean rewards and transitions."""
    table = {}

    def q(t, s, a):
        return table[t, s, a]

    for t in range(H, 0, -1):
        for s, a in product(range(3), (0, 1)):
            onward = sum(Fraction(transitions[s][a][n], 8) * v_of(q, t + 1, n) for n in range(3) if t < H)
            table[t, s, a] = reward(s, a) + Fraction(GAMMA) * onward
    return q


TRUE_Q = dynamic_programming(mean_reward, P)
MODEL_Q = dynamic_programming(r_hat, P_HAT)
VALUE = sum(START[s] * v_of(TRUE_Q, 1, s) for s in range(3))
ALL = list(trajectories())
# DR takes any Q̂; DR-v2 needs the Q̂ that R̂ and P̂ imply.
UNBIASED = {"is": any_q, "step-is": any_q, "dr": any_q, "dr-bsl": any_q, "dr-v2": MODEL_Q}


def value_of(estimator, episode):
    return reference.evaluate([episode], estimator, GAMMA, horizon=H, baseline=0.5).value


def frame_of(episodes):
    return pl.DataFrame(
        [
            {"episode": i, "step": t, **{name: float(x) for name, x in row.items()}}
            for i, episode in enumerate(episodes)
            for t, row in enumerate(episode)
        ]
    )


def test_the_trajectories_are_all_there_and_end_at_different_steps():
    assert sum(p for p, _ in ALL) == 1
    assert {len(steps) for _, steps in ALL} == {1, 2, 3}


@pytest.mark.parametrize("estimator", UNBIASED)
def test_unbiased_estimators_expect_the_value_exactly(estimator):
    q = UNBIASED[estimator]
    assert sum(p * value_of(estimator, rows(steps, q)) for p, steps in ALL) == VALUE


def test_dr_v2_without_the_transition_ratio_is_biased_by_the_wrong_model():
    def without(steps):
        return [{**row, "transition_ratio": 1} for row in rows(steps, MODEL_Q)]

    assert sum(p * value_of("dr-v2", without(steps)) for p, steps in ALL) != VALUE


def test_the_true_model_lowers_the_variance_of_dr():
    def second_moment(q):
        return sum(p * value_of("dr", rows(steps, q)) ** 2 for p, steps in ALL)

    assert second_moment(TRUE_Q) < second_moment(any_q)
    assert second_moment(TRUE_Q) < second_moment(lambda t, s, a: Fraction(0))


@pytest.mark.parametrize("estimator", UNBIASED)
def test_the_library_gives_every_trajectory_its_value(estimator):
    episodes = [rows(steps, UNBIASED[estimator]) for _, steps in ALL]
    ev = op.evaluate(frame_of(episodes), discount=GAMMA, estimators=[estimator], baseline=0.5, horizon=H)
    values = ev.values(estimator)["value"].to_list()
    expected = [value_of(estimator, episode) for episode in episodes]
    assert values == [pytest.approx(float(x), rel=1e-12, abs=1e-14) for x in expected]
    mean = math.fsum(float(p) * x for (p, _), x in zip(ALL, values, strict=True))
    assert mean == pytest.approx(float(VALUE), rel=1e-12)


# One state, action 0 goes on, action 1 stops, r=1 a step, H=2, π0=(.5,.5), π1=(.8,.2): v=1.8.
GO, STOP = ({"reward": 1.0, "behavior_prob": 0.5, "target_prob": p} for p in (0.8, 0.2))
SURVIVAL = [(Fraction(1, 2), [STOP]), (Fraction(1, 4), [GO, GO]), (Fraction(1, 4), [GO, STOP])]
GOLDEN = {1: 1.5, 2: 1.620062, 3: 1.676242, 4: 1.707991, 5: 1.727851, 6: 1.741175}


def samples(n):
    """Multisets of n trajectories with their multinomial probabilities."""
    for chosen in combinations_with_replacement(range(len(SURVIVAL)), n):
        count = math.factorial(n)
        for k in range(len(SURVIVAL)):
            count //= math.factorial(chosen.count(k))
        yield count * math.prod(SURVIVAL[k][0] for k in chosen), [SURVIVAL[k][1] for k in chosen]


@pytest.mark.parametrize("n", GOLDEN)
def test_golden_law_of_step_wis_by_the_reference(n):
    expected = sum(p * reference.evaluate(sample, "step-wis", 1.0).value for p, sample in samples(n))
    assert float(expected) == pytest.approx(GOLDEN[n], abs=5e-7)


@pytest.mark.parametrize("n", GOLDEN)
def test_golden_law_of_step_wis_by_the_library(n):
    expected = math.fsum(
        float(p) * op.evaluate(frame_of(sample), estimators=["step-wis"])["step-wis"].value for p, sample in samples(n)
    )
    assert expected == pytest.approx(GOLDEN[n], abs=5e-7)


@pytest.mark.parametrize("estimator", ["is", "step-is"])
def test_ordinary_importance_sampling_is_unbiased_on_the_same_problem(estimator):
    for n in (1, 2, 3):
        mean = math.fsum(
            float(p) * op.evaluate(frame_of(sample), estimators=[estimator])[estimator].value
            for p, sample in samples(n)
        )
        assert mean == pytest.approx(1.8, rel=1e-12)
