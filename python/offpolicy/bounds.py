"""Bounds on rewards, ratios and model values, and the range of each estimator that follows from them.

With ρ_t ≤ B_t, r in [a, b], Q̂_t in [l_t, u_t], and U = L = 0 after H:

    step-is   U_t = B_t max(0, b + γU_{t+1}),             L_t = B_t min(0, a + γL_{t+1})
    dr        U_t = u_t + B_t max(0, b + γU_{t+1} − l_t),  L_t = l_t + B_t min(0, a + γL_{t+1} − u_t)

An episode may end before H; then rewards, Q̂ and what follows are 0, so every range is widened to hold 0 unless
the length is fixed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from offpolicy.errors import UsageError
from offpolicy.protocols import Setting

Range = tuple[float, float]


class MissingBoundError(UsageError):
    """An estimator's range depends on a bound that was not given."""


@dataclass(frozen=True)
class Terms:
    """What of an evaluation the bounds depend on."""

    discount: float
    horizon: int
    baseline: float | None = None
    longest_seen: bool = False  # the horizon is that of the longest episode in the log, not given
    transition_ratio: bool = False  # dr-v2 reads P̂/P
    shortest: int | None = None  # the length of the shortest episode
    estimated: bool = False  # π0 of the ratios was
    mended: str | None = None  # what was taken for the rewards of truncated episodes


@dataclass(frozen=True)
class Bounds:
    """What is known for certain of rewards, ratios and model values; `ratio` and `q` may be given for each step.

    >>> import offpolicy as op
    >>> log = op.demo_log(episodes=2000)
    >>> ev = op.evaluate(log, discount=0.9, estimators=["step-is"], interval="hoeffding", horizon=10,
    ...                  bounds=op.Bounds(reward=(0, 1), ratio=1.6))
    >>> ev["step-is"].interval().kind
    'finite-sample'
    """

    reward: Range
    ratio: float | Sequence[float] | None = None
    q: Range | tuple[Sequence[float], Sequence[float]] | None = None
    r_hat: Range | None = None
    fixed_length: bool = False

    def __post_init__(self) -> None:
        """Refuses ranges that are none."""
        for name in ("reward", "q", "r_hat"):
            pair = getattr(self, name)
            if pair is not None and not (len(pair) == 2 and _ordered(*pair)):
                raise UsageError(f"bounds: {name} must be (lowest, highest), both finite, not {pair}")
        if self.ratio is not None and not all(0 <= ratio < math.inf for ratio in _several(self.ratio)):
            raise UsageError(f"bounds: ratio must be finite and not negative, not {self.ratio}")

    @classmethod
    def of(cls, domain: Setting) -> Bounds | None:
        """What a domain knows for certain: the range of its rewards, if it has ends.

        >>> import offpolicy as op
        >>> from offpolicy.testing import Walk
        >>> op.Bounds.of(Walk()).reward
        (-0.05, 1.0)
        """
        return cls(reward=domain.reward_range) if all(map(math.isfinite, domain.reward_range)) else None

    def returns(self, terms: Terms) -> Range:
        """The least and the largest possible discounted return."""
        least, most = self.rewards()
        total = 0.0
        for _ in range(terms.horizon):  # as the core builds the guess of dr-bsl, to the last bit
            total = 1 + terms.discount * total
        return least * total, most * total

    def hold(self, terms: Terms) -> bool:
        """True if they hold for every trajectory that could be: not where one may be longer than all that were seen."""
        return self.fixed_length or not terms.longest_seen

    def vacuous(self, low: float | None, high: float | None, terms: Terms) -> str | None:
        """A word about ends that leave no possible return out."""
        least, most = self.returns(terms)
        if self.hold(terms) and (low is None or low <= least) and (high is None or high >= most):
            return f"vacuous: it holds every possible return, {least:g} to {most:g}"
        return None

    def range(self, estimator: str, terms: Terms) -> Range:
        """The least and the largest value that one trajectory can have."""
        if estimator == "mc":
            return self.returns(terms)
        if estimator == "reg":
            return self._q(terms.horizon)[0]
        weights = self._ratio(terms.horizon)
        if estimator == "is":
            least, most = self.returns(terms)
            product = 1.0
            for weight in weights:
                product *= max(weight, 1.0) if not self.fixed_length else weight
            return min(0.0, product * least), max(0.0, product * most)
        if estimator == "step-is":
            return _step_is(self.rewards(), weights, terms.discount)
        if estimator == "dr-v2":
            if terms.transition_ratio:
                raise MissingBoundError("no range of dr-v2 is known where the log has a transition_ratio")
            if self.r_hat is None:
                raise MissingBoundError("bounds: dr-v2 needs r_hat=(lowest, highest)")
            (a, b), (low, high) = self.rewards(), self._widened(self.r_hat)
            least, most = _step_is((a - high, b - low), weights, terms.discount)
            lowest, highest = self._q(terms.horizon)[0]
            return lowest + least, highest + most
        baseline = estimator == "dr-bsl"
        models = _baseline(terms, self.fixed_length) if baseline else self._q(terms.horizon)
        return _dr(self.rewards(), weights, models, terms.discount)

    def _widened(self, pair: Range) -> Range:
        return pair if self.fixed_length else (min(0.0, pair[0]), max(0.0, pair[1]))

    def rewards(self) -> Range:
        """The least and the largest reward of a step, also of one after the end, where an episode may end early."""
        return self._widened(self.reward)

    def _ratio(self, horizon: int) -> list[float]:
        if self.ratio is None:
            raise MissingBoundError("bounds: give ratio=, the largest possible π1/π0")
        return _each(self.ratio, horizon, "ratio")

    def _q(self, horizon: int) -> list[Range]:
        if self.q is None:
            raise MissingBoundError("bounds: give q=(lowest, highest) of Q̂ and V̂")
        lows, highs = _each(self.q[0], horizon, "q"), _each(self.q[1], horizon, "q")
        pairs = list(zip(lows, highs, strict=True))
        return pairs[:1] + [self._widened(pair) for pair in pairs[1:]]


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


def _baseline(terms: Terms, fixed_length: bool) -> list[Range]:
    guesses, total = [], 0.0
    for _ in range(terms.horizon):
        total = 1 + terms.discount * total
        guess = (terms.baseline or 0.0) * total
        guesses.append((guess, guess))
    first, *rest = reversed(guesses)
    return [first] + [pair if fixed_length else (min(0.0, pair[0]), max(0.0, pair[1])) for pair in rest]


def _several(bound: float | Sequence[float]) -> Sequence[float]:
    return bound if isinstance(bound, Sequence) else [bound]


def _ordered(lows: float | Sequence[float], highs: float | Sequence[float]) -> bool:
    pairs = itertools.zip_longest(_several(lows), _several(highs))
    return all(low is None or high is None or -math.inf < low <= high < math.inf for low, high in pairs)


def _each(bound: float | Sequence[float], horizon: int, name: str) -> list[float]:
    if isinstance(bound, Sequence):
        if len(bound) < horizon:
            raise UsageError(f"bounds: {name} has {len(bound)} steps, but the horizon is {horizon}")
        return [float(x) for x in bound[:horizon]]
    return [float(bound)] * horizon
