"""All trajectories of a tiny MDP, with their probabilities: expectations without sampling."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement

import offpolicy as op
import pytest
import reference
from enumerated import ALL, GAMMA, MODEL_Q, TRUE_Q, UNBIASED, VALUE, H, any_q, frame_of, rows, value_of


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
