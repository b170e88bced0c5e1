"""Bounds as they are given, and the ranges that follow from them, against their recursions in rational arithmetic."""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from offpolicy.errors import MissingBoundError
from offpolicy.evaluation.bounds import Bounds, Terms
from offpolicy.evaluation.estimators import describe, named

TERMS = Terms(discount=0.75, horizon=3, baseline=-0.5)


@pytest.mark.parametrize("make", [list, tuple, np.array, pl.Series], ids=["list", "tuple", "array", "series"])
def test_bounds_for_each_step_may_be_any_sequence(make):
    given = Bounds(reward=make([0, 1]), ratio=make([2.0, 3.0, 1.5]), q=(make([-1.0, -2.0, 0.0]), make([1.0, 0.5, 0.0])))
    same = Bounds(reward=(0.0, 1.0), ratio=(2.0, 3.0, 1.5), q=((-1.0, -2.0, 0.0), (1.0, 0.5, 0.0)))
    assert given == same
    assert hash(given) == hash(same)
    for estimator in ("is", "step-is", "dr", "dr-bsl"):
        assert given.range(estimator, TERMS) == same.range(estimator, TERMS)


@pytest.mark.parametrize("number", [2, 2.0, np.float32(2.0), np.array(2.0), Fraction(2)], ids=repr)
def test_a_number_of_any_type_is_one_for_all_steps(number):
    given = Bounds(reward=(0, number), ratio=number, q=(-number, number))
    assert given == Bounds(reward=(0.0, 2.0), ratio=2.0, q=(-2.0, 2.0))
    each = Bounds(reward=(0, number), ratio=[2.0] * 3, q=(-number, [2.0] * 3))
    for estimator in ("is", "step-is", "dr"):
        assert given.range(estimator, TERMS) == each.range(estimator, TERMS)


REFUSED = {
    "q upside down in its second step": (
        {"q": ([0, 5], 1.0)},
        r"q must be \(lowest, highest\), both finite, not \(5, 1\) at step 1, counted from 0",
    ),
    "q upside down against one lowest": ({"q": (0.0, np.array([1.0, 1.0, -1.0]))}, r"q .* not \(0, -1\) at step 2"),
    "q not a number in a step": ({"q": ([0.0, math.nan], [1.0, 1.0])}, r"q .* not \(nan, 1\) at step 1"),
    "q without an end in a step": ({"q": ([0.0, 0.0], [math.inf, 1.0])}, r"q .* not \(0, inf\) at step 0"),
    "q of two lengths": ({"q": ([0.0, 0.0], [1.0])}, "q has 2 steps in its lowest and 1 in its highest"),
    "q of three ends": ({"q": (0.0, 1.0, 2.0)}, r"q must be \(lowest, highest\), both finite, not \(0"),
    "q with one end": ({"q": 1.0}, r"q must be \(lowest, highest\), both finite, not 1"),
    "q in words": ({"q": ("0", "1")}, "q must be made of numbers"),
    "q missing an end": ({"q": (None, 1.0)}, r"q .* not \(nan, 1\)$"),
    "q with rows of two lengths": ({"q": ([[0.0], [0.0, 1.0]], 2.0)}, "q must be made of numbers"),
    "ratio negative in a step": ({"ratio": np.array([2.0, -1.0])}, "ratio must .* not -1 at step 1, counted from 0"),
    "ratio not a number": ({"ratio": math.nan}, "ratio must be finite and not negative, not nan$"),
    "ratio as a matrix": ({"ratio": np.ones((2, 2))}, "ratio must be made of numbers, one for all steps or one for"),
    "ratio too large": ({"ratio": 10**400}, "ratio must be made of numbers"),
    "reward upside down": ({"reward": np.array([1.0, 0.0])}, r"reward .* not \(1, 0\)$"),
    "reward for each step": ({"reward": ([0.0, 0.0], 1.0)}, "reward .* it is one for all steps"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bounds_that_are_none_are_refused_by_name_and_step(case):
    arguments, message = REFUSED[case]
    with pytest.raises(op.UsageError, match=message):
        Bounds(**({"reward": (0.0, 1.0)} | arguments))


def exact_range(reward, ratios, models, gamma, fixed):
    """Of DR, with [l_t, u_t] from the first step on; an episode may end after any step, unless its length is fixed."""

    def widened(pair):
        return pair if fixed else (min(Fraction(0), pair[0]), max(Fraction(0), pair[1]))

    low, high = widened(reward)
    least = most = Fraction(0)
    for t in reversed(range(len(ratios))):
        l_t, u_t = models[t] if t == 0 else widened(models[t])
        most, least = (
            u_t + ratios[t] * max(0, high + gamma * most - l_t),
            l_t + ratios[t] * min(0, low + gamma * least - u_t),
        )
    return least, most


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("reward", [(-1, 2), (1, 2), (-2, -1)])
def test_the_range_of_a_baseline_is_that_of_its_guesses(reward, fixed):
    gamma, ratios = Fraction(3, 4), [Fraction(2), Fraction(3), Fraction(3, 2)]
    guesses = [Fraction(-1, 2) * sum(gamma**k for k in range(3 - t)) for t in range(3)]
    exact = exact_range(tuple(map(Fraction, reward)), ratios, [(g, g) for g in guesses], gamma, fixed)
    bounds = Bounds(reward=reward, ratio=np.array(ratios, dtype=float), fixed_length=fixed)
    assert bounds.range("dr-bsl", TERMS) == tuple(map(float, exact))


@pytest.mark.parametrize("fixed", [False, True])
def test_the_range_of_a_model_is_that_of_each_step(fixed):
    gamma, ratios = Fraction(3, 4), [Fraction(2), Fraction(3), Fraction(3, 2)]
    models = [(Fraction(1, 2), Fraction(2)), (Fraction(-3), Fraction(-1)), (Fraction(1, 4), Fraction(2))]
    exact = exact_range((Fraction(-1), Fraction(2)), ratios, models, gamma, fixed)
    lows, highs = (np.array([float(pair[end]) for pair in models]) for end in (0, 1))
    bounds = Bounds(reward=(-1, 2), ratio=np.array(ratios, dtype=float), q=(lows, highs), fixed_length=fixed)
    assert bounds.range("dr", TERMS) == tuple(map(float, exact))
    mixed = Bounds(reward=(-1, 2), ratio=2, q=(lows, 2.0), fixed_length=fixed)
    exact = exact_range(
        (Fraction(-1), Fraction(2)), [Fraction(2)] * 3, [(low, Fraction(2)) for low, _ in models], gamma, fixed
    )
    assert mixed.range("dr", TERMS) == tuple(map(float, exact))


@pytest.mark.parametrize("estimator", named())
def test_the_range_of_every_estimator_is_known_or_refused(estimator):
    bounds = Bounds(reward=(-1, 2), ratio=3.0, q=(-4, 5))
    if describe(estimator).range == "unknown":
        with pytest.raises(MissingBoundError, match=f"no range of {estimator} is known"):
            bounds.range(estimator, TERMS)
    else:
        least, most = bounds.range(estimator, TERMS)
        assert least < most


def test_an_unknown_estimator_has_no_range():
    with pytest.raises(op.UsageError, match="no estimator 'drr'; did you mean 'dr'"):
        Bounds(reward=(0, 1)).range("drr", TERMS)


def test_a_range_of_an_unknown_kind_is_refused(monkeypatch):
    other = SimpleNamespace(**{name: getattr(describe("dr"), name) for name in ("id", "reads")}, range="another")
    monkeypatch.setattr("offpolicy.evaluation.bounds.describe", lambda _: other)
    with pytest.raises(op.UsageError, match="no range of dr is known: bounds do not know the kind 'another'"):
        Bounds(reward=(0, 1), ratio=2.0, q=(0, 1)).range("dr", TERMS)


def test_the_first_value_of_a_model_is_within_that_of_the_first_step():
    assert Bounds(reward=(0, 1), q=([-1, 0, 0], [2, 1, 1])).range("reg", TERMS) == (-1, 2)
