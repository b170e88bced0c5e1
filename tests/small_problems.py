"""Problems with a few possible trajectories, and samples of them: intervals without a log, coverage without chance."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement, product

import numpy as np
import offpolicy as op
import polars as pl
import reference
from offpolicy import intervals
from offpolicy.bounds import Terms
from offpolicy.folds import share_of
from offpolicy.intervals.sketch import ROUNDS, SEED
from offpolicy.samples import Steps


def row(reward, behavior, target):
    return {"reward": float(reward), "behavior_prob": float(behavior), "target_prob": float(target)}


def rounds_of(ids):
    """The places of ids by round."""
    rounds = np.searchsorted(ROUNDS, share_of(ids, SEED), side="right")
    return [np.flatnonzero(rounds == k).tolist() for k in range(len(ROUNDS))]


@dataclass(frozen=True)
class Problem:
    """Trajectories with their probabilities under π0, and what is known for certain."""

    law: tuple  # pairs of probability and rows
    discount: float
    horizon: int
    reward: tuple

    @property
    def terms(self) -> Terms:
        return Terms(self.discount, self.horizon)

    @cached_property
    def bounds(self) -> op.Bounds:
        ratio = max(r["target_prob"] / r["behavior_prob"] for _, rows in self.law for r in rows)
        return op.Bounds(reward=self.reward, ratio=ratio)

    def exact(self, estimator: str, baseline: float = 0.0) -> list[Fraction]:
        """The value of each trajectory."""
        arguments = {"horizon": self.horizon, "baseline": baseline}
        return [reference.evaluate([rows], estimator, self.discount, **arguments).value for _, rows in self.law]

    @cached_property
    def value(self) -> Fraction:
        """v of π1."""
        return sum(p * x for (p, _), x in zip(self.law, self.exact("step-is"), strict=True))

    @cached_property
    def weights(self) -> list[Fraction]:
        """c_H of each trajectory."""
        return [reference.cumulative_ratios(reference.exact_steps(rows))[-1] for _, rows in self.law]

    def log(self, chosen) -> pl.DataFrame:
        """A log of trajectories by their numbers."""
        return pl.DataFrame(
            [{"episode": i, "step": t, **r} for i, k in enumerate(chosen) for t, r in enumerate(self.law[k][1])]
        )

    def multisets(self, n: int) -> Iterator[tuple[Fraction, tuple[int, ...]]]:
        """All samples of n trajectories whatever their order, with their probabilities."""
        for chosen in combinations_with_replacement(range(len(self.law)), n):
            ways = math.factorial(n)
            for k in range(len(self.law)):
                ways //= math.factorial(chosen.count(k))
            yield ways * self.chance(chosen), chosen

    def sequences(self, n: int) -> Iterator[tuple[Fraction, tuple[int, ...]]]:
        """All samples of n trajectories in their order."""
        for chosen in product(range(len(self.law)), repeat=n):
            yield self.chance(chosen), chosen

    def by_parts(self, parts) -> Iterator[tuple[Fraction, tuple[int, ...]]]:
        """All samples, whatever the order within each of some parts; a part is a list of places."""
        for chosen in product(*(list(self.multisets(len(part))) for part in parts)):
            places = {}
            for part, (_, some) in zip(parts, chosen, strict=True):
                places |= zip(part, some, strict=True)
            yield math.prod(p for p, _ in chosen), tuple(places[i] for i in range(len(places)))

    def chance(self, chosen) -> Fraction:
        return math.prod((self.law[k][0] for k in chosen), start=Fraction(1))

    def interval(self, chosen, method, confidence, side="two", estimator="step-is", ids=None, **options):
        """The interval of a sample: all of the package but the scan."""
        values = self._floats(estimator)[list(chosen)]
        n, mean = len(chosen), math.fsum(values) / len(chosen)
        error = math.sqrt(math.fsum((x - mean) ** 2 for x in values) / (n * (n - 1))) if n > 1 else None
        request = intervals.Request(
            method=method,
            policy="target",
            estimator=estimator,
            value=mean,
            std_error=error,
            episodes=n,
            terms=self.terms,
            samples=Given(self, chosen, range(n) if ids is None else ids),
            confidence=confidence,
            side=side,
            **({"bounds": self.bounds} | options),
        )
        return intervals.interval(request)

    def _floats(self, estimator, baseline=0.0):
        key = (estimator, baseline)
        if key not in self._made:
            self._made[key] = np.array([float(x) for x in self.exact(estimator, baseline)])
        return self._made[key]

    @cached_property
    def _steps(self) -> tuple:
        """c_t and r_t of each trajectory, up to H."""
        log = reference.absorbed([reference.exact_steps(rows) for _, rows in self.law], self.horizon)
        c = np.array([[float(x) for x in reference.cumulative_ratios(steps)[1:]] for steps in log])
        return c, np.array([[float(step.reward) for step in steps] for steps in log])

    @cached_property
    def _made(self) -> dict:
        return {}


@dataclass(frozen=True)
class Given:
    """A sample in the place of a log."""

    problem: Problem
    chosen: tuple
    ids: Sequence[int]

    def values(self, policy, estimator, baseline=None):
        values = self.problem._floats(estimator, baseline or 0.0)[list(self.chosen)]
        return pl.DataFrame({"episode": self.ids, "value": values})

    def steps(self, policy, *roles, horizon=None):
        c, rewards = (each[list(self.chosen)] for each in self.problem._steps)
        yield Steps(pl.Series(self.ids), c, {"reward": rewards} if "reward" in roles else {})

    def once(self, key, make):
        return make()


HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
#: One step, two actions, a reward for the one that π1 prefers.
BANDIT = Problem(((HALF, [row(1, 0.5, 0.875)]), (HALF, [row(0, 0.5, 0.125)])), 1.0, 1, (0.0, 1.0))
#: One step, three actions, one of which π1 never takes; rewards of both signs.
MIXED = Problem(
    ((QUARTER, [row(-1, 0.25, 0.5)]), (QUARTER, [row(0.5, 0.25, 0.0)]), (HALF, [row(2, 0.5, 0.5)])),
    1.0,
    1,
    (-1.0, 2.0),
)
#: Up to two steps: action 0 goes on, action 1 stops; a reward of 1 for each step.
GO, STOP = row(1, 0.5, 0.75), row(1, 0.5, 0.25)
SURVIVAL = Problem(((HALF, [STOP]), (QUARTER, [GO, GO]), (QUARTER, [GO, STOP])), 0.5, 2, (0.0, 1.0))
#: One step; π0 seldom takes the action that π1 takes half the time, and which alone is rewarded.
RARE = Problem(
    ((Fraction(1, 8), [row(1, 0.125, 0.5)]), (Fraction(7, 8), [row(0, 0.875, 0.5)])),
    1.0,
    1,
    (0.0, 1.0),
)
#: Two steps, two actions: nothing but costs.
CHEAP, DEAR = row(-1, 0.5, 0.75), row(-3, 0.5, 0.25)
COSTS = Problem(tuple((QUARTER, [a, b]) for a in (CHEAP, DEAR) for b in (CHEAP, DEAR)), 0.75, 2, (-3.0, 0.0))
#: One step, two actions, random rewards.
NOISY = Problem(
    (
        (QUARTER, [row(0, 0.5, 0.25)]),
        (QUARTER, [row(1, 0.5, 0.25)]),
        (Fraction(1, 8), [row(0, 0.5, 0.75)]),
        (Fraction(3, 8), [row(1, 0.5, 0.75)]),
    ),
    1.0,
    1,
    (0.0, 1.0),
)
PROBLEMS = {
    "bandit": BANDIT,
    "mixed": MIXED,
    "survival": SURVIVAL,
    "rare": RARE,
    "costs": COSTS,
    "noisy": NOISY,
}
