"""Bounds on rewards, ratios and model values, and the range of each estimator that follows from them.

Let ρ_t ≤ B_t, r in [a, b] and Q̂_t in [l_t, u_t]. The value of a trajectory is between L_1 and U_1, where L = U = 0
after H and

    step-is   U_t = B_t max(0, b + γU_{t+1}),             L_t = B_t min(0, a + γL_{t+1})
    dr        U_t = u_t + B_t max(0, b + γU_{t+1} − l_t),  L_t = l_t + B_t min(0, a + γL_{t+1} − u_t)

An episode may end before H, and then its later rewards and Q̂ are 0. The ranges of rewards, and of Q̂ after the first
step, are therefore widened to hold 0, unless all episodes have the same length (`fixed_length`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from offpolicy._util import words
from offpolicy.errors import OffPolicyError
from offpolicy.errors.kinds.of_evaluation import (
    bad_bound,
    bounds_too_short,
    ends_of_bounds,
    missing_bound,
    range_not_known,
)
from offpolicy.errors.kinds.of_plugins import maker_failed, wrong_numbers
from offpolicy.evaluation.estimators import describe, from_plugin
from offpolicy.protocols import Floats, Setting

Range = tuple[float, float]
#: One number for all steps, or a sequence with one number per step.
ByStep = float | Sequence[float] | Floats


@dataclass(frozen=True)
class Terms:
    """The settings and facts of an evaluation on which bounds depend."""

    discount: float
    horizon: int
    baseline: float | None = None
    longest_seen: bool = False  # whether the horizon was not given and is the length of the longest episode
    transition_ratio: bool = False  # whether the policy has P̂/P, which dr-v2 reads
    shortest: int | None = None  # the length of the shortest episode
    estimated: bool = False  # whether π0 in the ratios was estimated
    mended: str | None = None  # words for what replaced the missing rewards of truncated episodes


@runtime_checkable
class Ranged(Protocol):
    """An estimator of a plugin that knows how bounds limit the value of a trajectory."""

    def range(self, bounds: Bounds, terms: Terms) -> Range:
        """Return the least and the largest value that a trajectory can have."""
        ...


@dataclass(frozen=True)
class Bounds:
    """What is known for certain of rewards, ratios and model values.

    `ratio` and `q` take one number for all steps or one per step. To bound π1/π0 is to say that π0 can take every
    action that π1 takes; without `ratio` nothing is said about that. Arrays and sequences are kept as tuples, so that
    bounds can be compared.

    >>> import offpolicy as op
    >>> log = op.demo_log(episodes=2000)
    >>> ev = op.evaluate(log, discount=0.9, estimators=["step-is"], interval="hoeffding", horizon=10,
    ...                  bounds=op.Bounds(reward=(0, 1), ratio=1.6))
    >>> ev["step-is"].interval().kind
    'finite-sample'
    >>> op.Bounds(reward=(0, 1), q=([0, 5], 1.0))
    Traceback (most recent call last):
        ...
    offpolicy.errors.UsageError: bounds: q must be (lowest, highest), both finite, not (5, 1) at step 1, counted from 0
    """

    reward: Range
    ratio: ByStep | None = None
    q: tuple[ByStep, ByStep] | None = None
    fixed_length: bool = False

    def __post_init__(self) -> None:
        """Refuse bounds that are not finite or not in order, and bounds on ratios that are negative."""
        for name, by_step in (("reward", False), ("q", True)):
            if getattr(self, name) is not None:
                low, high = _read_pair(getattr(self, name), name, by_step)
                object.__setattr__(self, name, (_kept(low), _kept(high)))
        if self.ratio is not None:
            ratio = _read(self.ratio, "ratio")
            for index in map(tuple, np.argwhere(~((ratio >= 0) & (ratio < math.inf)))[:1]):
                raise bad_bound(
                    name="ratio", expected="finite and not negative", found=f"{ratio[index]:g}{_place(index)}"
                )
            object.__setattr__(self, "ratio", _kept(ratio))

    @classmethod
    def of(cls, domain: Setting) -> Bounds | None:
        """Return the bounds that a domain knows, which is the range of its rewards; None if that is infinite.

        >>> import offpolicy as op
        >>> from offpolicy.testing import Walk
        >>> op.Bounds.of(Walk()).reward
        (-0.05, 1.0)
        """
        return cls(reward=domain.reward_range) if all(map(math.isfinite, domain.reward_range)) else None

    def returns(self, terms: Terms) -> Range:
        """Return the least and the largest possible discounted return."""
        (least, most), total = self.rewards(), _annuities(terms)[0]
        return least * total, most * total

    def remainder(self, terms: Terms) -> Range:
        """Return the least and the most that rewards after step H can add to a value: γ^H r / (1 − γ), if γ < 1.

        >>> import offpolicy as op
        >>> from offpolicy.evaluation.bounds import Terms
        >>> op.Bounds(reward=(-1, 2)).remainder(Terms(discount=0.5, horizon=3))
        (-0.25, 0.5)
        """
        after = terms.discount**terms.horizon / (1 - terms.discount)
        least, most = self.rewards()
        return least * after, most * after

    def hold(self, terms: Terms) -> bool:
        """Return True if the bounds hold for every possible trajectory.

        They do not where a trajectory may be longer than all that were seen.
        """
        return self.fixed_length or not terms.longest_seen

    def vacuous(self, low: float | None, high: float | None, terms: Terms) -> str | None:
        """Return a remark if an interval with these ends excludes no possible return, and None otherwise."""
        least, most = self.returns(terms)
        if self.hold(terms) and (low is None or low <= least) and (high is None or high >= most):
            return f"vacuous: it holds every possible return, {least:g} to {most:g}"
        return None

    def range(self, estimator: str, terms: Terms) -> Range:
        """Return the least and the largest value that one trajectory can have, by the kind of the estimator's range."""
        about = describe(estimator)
        match about.range:
            case "return":
                return self.returns(terms)
            case "first-value":
                return self._q(terms.horizon)[0]
            case "weighted-return":
                return self._weighted_return(terms)
            case "weighted-rewards":
                return _step_is(self.rewards(), self._ratio(terms.horizon), terms.discount)
            case "less-control-variate":
                weights = self._ratio(terms.horizon)
                return _dr(self.rewards(), weights, self._q(terms.horizon), terms.discount)
            case "less-baseline":
                return _dr(self.rewards(), self._ratio(terms.horizon), self._baseline(terms), terms.discount)
            case "own":
                return self._told(estimator, terms)
            case "unknown":
                where = " where the log has a transition_ratio" if "transition_ratio" in about.reads else ""
                raise range_not_known(estimator=estimator, where=where)
            case kind:
                raise range_not_known(estimator=estimator, where=f": bounds do not know the kind {kind!r}")

    def _told(self, estimator: str, terms: Terms) -> Range:
        """Return the range that an estimator of a plugin tells."""
        about = from_plugin(estimator)
        assert about is not None
        assert isinstance(about.estimator, Ranged)
        try:
            low, high = (float(end) for end in about.estimator.range(self, terms))
        except OffPolicyError:
            raise
        except Exception as error:
            what = f"the range of {about.who} failed"
            raise maker_failed(what=what, type=type(error).__name__, error=error) from error
        if not low <= high:
            raise wrong_numbers(who=f"the range of {about.who}", expected="(lowest, highest)", found=(low, high))
        return low, high

    def _weighted_return(self, terms: Terms) -> Range:
        """Return the range of a return times the product of all ratios."""
        least, most = self.returns(terms)
        product = 1.0
        for weight in self._ratio(terms.horizon):
            product *= max(weight, 1.0) if not self.fixed_length else weight
        return min(0.0, product * least), max(0.0, product * most)

    def _widened(self, pair: Range) -> Range:
        return pair if self.fixed_length else (min(0.0, pair[0]), max(0.0, pair[1]))

    def rewards(self) -> Range:
        """Return the least and the largest reward of a step, which include 0 where episodes may end early."""
        return self._widened(self.reward)

    def _ratio(self, horizon: int) -> list[float]:
        if self.ratio is None:
            raise missing_bound(give=words.GIVE_RATIO, what=", the largest possible π1/π0")
        return _each(self.ratio, horizon, "ratio")

    def _q(self, horizon: int) -> list[Range]:
        if self.q is None:
            raise missing_bound(give=words.GIVE_Q, what=" of Q̂ and V̂")
        lows, highs = (_each(end, horizon, "q") for end in self.q)
        return self._after_the_first(list(zip(lows, highs, strict=True)))

    def _baseline(self, terms: Terms) -> list[Range]:
        guesses = [(terms.baseline or 0.0) * total for total in _annuities(terms)]
        return self._after_the_first([(guess, guess) for guess in guesses])

    def _after_the_first(self, models: list[Range]) -> list[Range]:
        """Widen all ranges but the first to hold 0: every episode has a first step, and may end after it."""
        return models[:1] + [self._widened(pair) for pair in models[1:]]


def _step_is(reward: Range, weights: list[float], discount: float) -> Range:
    least = most = 0.0
    for weight in reversed(weights):
        most = weight * max(0.0, reward[1] + discount * most)
        least = weight * min(0.0, reward[0] + discount * least)
    return least, most


def _dr(reward: Range, weights: list[float], models: list[Range], discount: float) -> Range:
    least = most = 0.0
    for weight, (low, high) in zip(reversed(weights), reversed(models), strict=True):
        most, least = (
            high + weight * max(0.0, reward[1] + discount * most - low),
            low + weight * min(0.0, reward[0] + discount * least - high),
        )
    return least, most


def _annuities(terms: Terms) -> list[float]:
    """Return Σ_{k≤H−t} γ^k for t = 1, …, H, with the same bits as in the guess that the core builds for dr-bsl."""
    totals, total = [], 0.0
    for _ in range(terms.horizon):
        total = 1 + terms.discount * total
        totals.append(total)
    return totals[::-1]


def _read_pair(pair: Any, name: str, by_step: bool) -> tuple[Floats, Floats]:
    """Return (lowest, highest) as arrays, both with one number per step if either has."""
    expected = "(lowest, highest), both finite"
    try:
        low, high = pair
    except (TypeError, ValueError):
        raise bad_bound(name=name, expected=expected, found=repr(pair)) from None
    low, high = _read(low, name), _read(high, name)
    if not by_step and (low.ndim or high.ndim):
        raise bad_bound(name=name, expected=expected, found=f"{pair!r}: it is one for all steps")
    if low.ndim and high.ndim and len(low) != len(high):
        raise ends_of_bounds(name=name, low=len(low), high=len(high))
    low, high = np.broadcast_arrays(low, high)
    for index in map(tuple, np.argwhere(~((low > -math.inf) & (low <= high) & (high < math.inf)))[:1]):
        raise bad_bound(name=name, expected=expected, found=f"({low[index]:g}, {high[index]:g}){_place(index)}")
    return low, high


def _read(bound: Any, name: str) -> Floats:
    """Return a bound as an array: a scalar for all steps, or one number per step."""
    try:
        numbers = np.asarray(bound)
        if numbers.ndim < 2 and numbers.dtype.kind in "biufO":
            return numbers.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise bad_bound(name=name, expected="made of numbers, one for all steps or one for each", found=repr(bound))


def _kept(numbers: Floats) -> float | tuple[float, ...]:
    return tuple(numbers.tolist()) if numbers.ndim else float(numbers)


def _place(index: tuple[Any, ...]) -> str:
    return f" at step {index[0]}, counted from 0" if index else ""


def _each(bound: ByStep, horizon: int, name: str) -> list[float]:
    steps = np.asarray(bound)
    if not steps.ndim:
        return [float(steps)] * horizon
    if len(steps) < horizon:
        raise bounds_too_short(name=name, steps=len(steps), horizon=horizon)
    found: list[float] = steps[:horizon].tolist()
    return found
