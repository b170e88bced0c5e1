"""Cells of a grid, against the same floor in rational arithmetic."""

import math
from fractions import Fraction

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from offpolicy import Grid

HALF = Fraction(1, 2)
SCALES = (64.0, 256.0, 0.25, 3.0)


def exact_cell(x, scale):
    return math.floor(Fraction(scale) * Fraction(x) + HALF)


def distance_to_an_edge(x, scale):
    place = Fraction(scale) * Fraction(x) + HALF
    return abs(place - round(place))


@given(st.floats(-8, 8), st.sampled_from(SCALES))
def test_a_cell_is_the_exact_floor(x, scale):
    assume(distance_to_an_edge(x, scale) > Fraction(1, 2**40))  # nearer to an edge the sum itself is rounded
    grid = Grid.over([(-8, 8)], [scale])
    assert grid.index(np.array([[x]]))[0] + grid.low[0] == exact_cell(x, scale)


@pytest.mark.parametrize("scale", [1.0, 64.0, 0.5])
def test_a_half_goes_up(scale):
    grid = Grid.over([(-4, 4)], [scale])
    x = np.arange(-3, 4)[:, None] / scale / 2 if scale >= 1 else np.arange(-1, 2)[:, None] / scale / 2
    assert (grid.index(x) + grid.low[0]).tolist() == [exact_cell(float(v), scale) for v in x[:, 0]]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_the_last_coordinate_runs_fastest(size, data):
    low = [data.draw(st.integers(-3, 3)) for _ in size]
    cell = [data.draw(st.integers(0, n - 1)) for n in size]
    grid = Grid(tuple(size), tuple(low))
    state = np.array([[c + a for c, a in zip(cell, low, strict=True)]])
    expected = 0
    for c, n in zip(cell, size, strict=True):
        expected = expected * n + c
    assert grid.index(state)[0] == expected


def test_every_cell_has_a_centre_that_is_in_it():
    grid = Grid.over([(-1.2, 0.6), (-0.07, 0.07)], scale=(64, 256))
    cells = np.arange(grid.cells)
    assert np.array_equal(grid.index(grid.centers(cells)), cells)
    assert grid.centers(cells).shape == (grid.cells, 2)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.float32, np.float64, bool])
def test_all_types_of_numbers_have_the_same_cells(dtype):
    states = np.array([[0, 1], [1, 0], [1, 1]])
    assert Grid((2, 2)).index(states.astype(dtype)).tolist() == [1, 2, 3]


def test_a_32_bit_float_is_not_rounded_again():
    x = np.array([[0.3]], dtype=np.float32)
    scale = 2.0**25 + 1
    grid = Grid.over([(0, 1)], [scale])
    assert grid.index(x)[0] == exact_cell(float(x[0, 0]), scale)


@pytest.mark.parametrize(
    ("state", "named"),
    [
        ([0.0, 5.0], "coordinate 1 of the state is 5.0"),
        ([-0.6, 0.0], "coordinate 0 of the state is -0.6"),
        ([np.nan, 0.0], "coordinate 0 of the state is nan"),
        ([0.0, np.inf], "coordinate 1 of the state is inf"),
    ],
)
def test_a_state_outside_is_named(state, named):
    with pytest.raises(op.OffPolicyError, match=f"row 1: {named}, outside the grid, which goes from"):
        Grid((3, 3)).index(np.array([[1.0, 1.0], state]))


def test_circular_coordinates_keep_their_cells():
    assert Grid((8,), circular=(True,)).index(np.array([[7], [0]])).tolist() == [7, 0]
    with pytest.raises(op.OffPolicyError, match="coordinate 0 of the state is 8"):
        Grid((8,), circular=(True,)).index(np.array([[8]]))


def test_no_state_has_no_cell():
    assert Grid((3, 4)).index(np.empty((0, 2))).shape == (0,)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Grid(()), "at least one cell"),
        (lambda: Grid((3, 0)), "at least one cell"),
        (lambda: Grid((3, 3), low=(1,)), "2 values of low, not 1"),
        (lambda: Grid((3,), circular=(True, False)), "1 values of circular, not 2"),
        (lambda: Grid((3,)).index(np.zeros(3)), r"an \(n, 1\) array"),
        (lambda: Grid((3,)).index(np.zeros((3, 2))), r"an \(n, 1\) array"),
    ],
)
def test_what_makes_no_sense_is_refused(make, says):
    with pytest.raises(op.UsageError, match=says):
        make()


def test_a_grid_that_is_too_big_says_what_is():
    with pytest.raises(
        op.UsageError, match=r"100 coordinates with 10 × 10 × 10 × 10 × … cells has about 1e100 of them"
    ):
        Grid((10,) * 100)
    columns = tuple(f"x{i}" for i in range(12))
    log = pl.DataFrame({"episode": [0], "step": [0], "action": [0], "reward": [1.0], **{name: [1] for name in columns}})
    domain = op.LoggedDomain(columns, actions=2, horizon=2, reward_range=(0.0, 1.0))
    big = Grid((10,) * 12)
    for ask in (
        lambda: op.fitter("tabular", aggregate=big).fit(log, domain),
        lambda: op.estimate_behavior(log, domain, aggregate=big, folds=1),
    ):
        with pytest.raises(
            op.UsageError, match=r"12 coordinates .* about 1e12 of them, with 2 actions each: a table of"
        ):
            ask()


def test_cells_of_a_function_are_named_too():
    from offpolicy.grid import check_table
    from offpolicy.models.aggregation import ByFunction

    with pytest.raises(op.UsageError, match="there are 1099511627776 cells, with 3 actions each"):
        check_table(ByFunction(lambda states: states[:, 0], 2**40), actions=3)
