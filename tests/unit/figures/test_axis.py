"""The ends of an axis."""

import math

import pytest
from offpolicy.figures.axis import limits


def test_every_number_is_within_an_axis_of_like_numbers():
    low, high, cut = limits([1.0, 2.0, 3.0])
    assert low < 1.0 < 3.0 < high
    assert not cut


def test_a_far_number_is_cut_but_for_one_that_must_be_seen():
    assert limits([1.0, 2.0, 3.0, 4.0, 1e9])[1:] == (pytest.approx(4.09), True)
    assert limits([1.0, 2.0, 3.0, 4.0], [1e9])[1] > 1e9


@pytest.mark.parametrize("numbers", [[], [None], [math.nan, math.inf, None], [0.0], [5.0, 5.0], [-1e308, 1e308]])
def test_the_axis_is_finite_and_has_a_width(numbers):
    low, high, _ = limits(numbers)
    assert math.isfinite(low)
    assert math.isfinite(high)
    assert low < high
