"""Logs, discounts and groupings that hypothesis makes up, for the properties that hold for all of them."""

from dataclasses import replace

import numpy as np
import pytest
import reference
from hypothesis import strategies as st
from logs import episodes_of, skeleton

MODEL = ("reward", "q_hat", "v_hat", "r_hat")
DISCOUNTS = st.sampled_from([0.0, 0.3, 0.9, 1.0]) | st.floats(0.01, 1.0)
#: A cancellation leaves digits of what was there: not so small that none are left.
NUMBERS = st.floats(-1e3, 1e3).map(lambda x: x if abs(x) > 1e-6 else 0.0)
#: Any magnitude whose product with a hundred thousand others is still beside a float.
WIDE = NUMBERS | st.builds(lambda x, k: x * 10.0**k, st.floats(-10.0, 10.0), st.integers(-140, 140))
PROBABILITIES = st.floats(0.01, 1.0)
TINY = PROBABILITIES | st.sampled_from([1e-8, 1e-130, 5e-324])
BASELINE = 0.5


@st.composite
def logs(draw, min_episodes=2, max_episodes=5, max_length=10, numbers=NUMBERS, probabilities=PROBABILITIES):
    """Ragged episodes of a few values a column, in places by a seed: many draws would take longer than the test.

    Some have π1 = 0 somewhere, but not the first: else nothing could be divided by the weights. Ten steps are more than
    the eight that the core folds at once.
    """
    lengths = draw(st.lists(st.integers(1, max_length), min_size=min_episodes, max_size=max_episodes))
    frame = skeleton(lengths, first_step=draw(st.integers(0, 1)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def column(values):
        return rng.choice(draw(st.lists(values, min_size=1, max_size=6)), frame.height)

    never = rng.random(frame.height) < draw(st.sampled_from([0.0, 0.1, 0.3]))
    return frame.with_columns(
        behavior_prob=column(probabilities),
        target_prob=np.where(never & (frame["episode"].to_numpy() > 0), 0.0, column(probabilities)),
        transition_ratio=column(st.floats(0.25, 4.0)),
        **{name: column(numbers) for name in MODEL},
    )


def wild_logs(**options):
    """Numbers over 280 decades and ratios beyond: an estimate may be one that no float can hold."""
    return logs(numbers=WIDE, probabilities=TINY, **options)


@st.composite
def groupings(draw, parts):
    """The parts in any order and bracketing: nested pairs."""
    rest = list(draw(st.permutations(parts)))
    while len(rest) > 1:
        place = draw(st.integers(0, len(rest) - 2))
        rest[place : place + 2] = [(rest[place], rest[place + 1])]
    return rest[0]


def merged(grouping, state, merge):
    """The states of a grouping's parts, merged in that order; `merge` gives the sum of two."""
    if not isinstance(grouping, tuple):
        return state(grouping)
    left, right = grouping
    return merge(merged(left, state, merge), merged(right, state, merge))


def near(expected, scale=0.0):
    """1e-12 of the value, or of the terms that it is the sum of."""
    return pytest.approx(float(expected), rel=1e-12, abs=1e-13 * scale)


def terms(log, discount):
    """Each estimate if nothing in it cancelled, roughly: what its rounding is measured by."""
    episodes = [positive(rows) for rows in episodes_of(log)]
    horizon = max(map(len, episodes))

    def values(estimator):
        if estimator in reference.SELF_NORMALISED:
            return reference.normalised_values(reference.absorbed(episodes, horizon), estimator, discount)
        return [magnitude(steps, estimator, discount, horizon) for steps in episodes]

    return {estimator: float(reference.mean(values(estimator))) for estimator in reference.UNIQUE}


def positive(rows):
    """The steps of an episode, in floats, with signs by which no term is below 0."""
    plus, minus = ("reward", "v_hat"), ("q_hat", "r_hat", "transition_ratio")
    return [
        reference.Step(
            row["target_prob"] / row["behavior_prob"],
            **{name: abs(row[name]) for name in plus},
            **{name: -abs(row[name]) for name in minus},
        )
        for row in rows
    ]


def magnitude(steps, estimator, discount, horizon):
    """The value of a trajectory of such steps."""
    if estimator == "dr-bsl":
        guess = {"q_hat": -BASELINE * horizon, "v_hat": BASELINE * horizon}
        return reference.dr([replace(step, **guess) for step in steps], discount)
    return reference.per_trajectory(steps, estimator, discount, horizon, 0.0)
