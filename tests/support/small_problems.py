"""Problems with a few possible trajectories, and samples of them: intervals without a log, coverage without chance."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations_with_replacement, product

import numpy as np
import offpolicy as op
import polars as pl
import reference
from offpolicy import intervals
from offpolicy.evaluation.bounds import Terms
from offpolicy.intervals.sketch import rounds_of
from offpolicy.logs.trajectories import Steps


def row(reward, behavior, target):
    return {"reward": float(reward), "behavior_prob": float(behavior), "target_prob": float(target)}


def places_by_round(ids):
    """The places of ids by round."""
    rounds = rounds_of(ids)
    return [np.flatnonzero(rounds == k).tolist() for k in np.unique(rounds)]


def ids_in(*sizes):
    """So many ids of the first round, so many of the next, and so on."""
    rounds = rounds_of(range(4000))
    return [i for k, size in enumerate(sizes) for i in np.flatnonzero(rounds == k)[:size].tolist()]


@dataclass(frozen=True)
class Problem:
    """Trajectories with their probabilities under π0, and what is known for certain."""

    law: tuple  # pairs of probability and rows
    discount: float
    horizon: int
    reward: tuple

    @cached_property
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
        return self.sample(chosen, ids).interval(method, confidence, side, estimator, **options)

    def sample(self, chosen, ids=None) -> "Sample":
        """A sample with ids 0, …, n - 1, or others."""
        return Sample(self, np.array(chosen), numbered(len(chosen)) if ids is None else pl.Series(ids))

    def floats(self, estimator, baseline=0.0):
        """The value of each trajectory, rounded."""
        key = (estimator, baseline)
        return kept(self._made, key, lambda: np.array([float(x) for x in self.exact(*key)]))

    @cached_property
    def padded(self) -> dict:
        """Weights, rewards and model values by trajectory and step, as in `Steps`."""
        log = reference.absorbed([reference.exact_steps(rows) for _, rows in self.law], self.horizon)
        found = {role: [[getattr(s, role) for s in steps] for steps in log] for role in ("reward", "q_hat", "v_hat")}
        found["c"] = [reference.cumulative_ratios(steps)[1:] for steps in log]
        return {role: np.array(each, dtype=np.float64) for role, each in found.items()}

    @cached_property
    def _made(self) -> dict:
        return {}


@dataclass(frozen=True)
class Sample:
    """A sample in the place of a log; what several intervals need is made once."""

    problem: Problem
    chosen: np.ndarray
    ids: pl.Series
    made: dict = field(default_factory=dict)
    passes: int = 2
    clusters: None = None

    def interval(self, method, confidence, side="two", estimator="step-is", **options):
        value, error = self.once(("estimate", estimator), lambda: self.estimate(estimator))
        request = intervals.Request(
            method=method,
            policy="target",
            estimator=estimator,
            value=value,
            std_error=error,
            episodes=len(self.chosen),
            terms=self.problem.terms,
            samples=self,
            confidence=confidence,
            side=side,
            ess=self.once("ess", self.ess),
            **({"bounds": self.problem.bounds} | options),
        )
        return intervals.interval(request, "no trajectory has weight" if math.isnan(value) else None)

    def ess(self):
        """(Σc)²/Σc² of the final weights."""
        c = self.problem.padded["c"][self.chosen][:, -1]
        return float(c.sum() ** 2 / (c**2).sum()) if c.any() else 0.0

    def estimate(self, estimator):
        """The estimate and its standard error; NaN where no trajectory has the weight that its normaliser needs."""
        problem, n = self.problem, len(self.chosen)
        if estimator in reference.SELF_NORMALISED:
            if not problem.padded["c"][self.chosen].sum(axis=0).all():
                return math.nan, None
            log = [problem.law[k][1] for k in self.chosen]
            found = reference.evaluate(log, estimator, problem.discount, horizon=problem.horizon)
            return float(found.value), found.std_error
        values = problem.floats(estimator)[self.chosen].tolist()
        mean = math.fsum(values) / n
        return mean, math.sqrt(math.fsum((x - mean) ** 2 for x in values) / (n * (n - 1))) if n > 1 else None

    def values(self, policy, estimator, baseline=None):
        return pl.DataFrame(
            {"episode": self.ids, "value": self.problem.floats(estimator, baseline or 0.0)[self.chosen]}
        )

    def steps(self, policy, *roles, horizon=None):
        padded = {role: self.problem.padded[role][self.chosen] for role in ("c", *roles)}
        yield Steps(self.ids, padded.pop("c"), padded)

    def once(self, key, make):
        return kept(self.made, key, make)


def kept(made, key, make):
    """What `make` gives, made once."""
    if key not in made:
        made[key] = make()
    return made[key]


@cache
def numbered(n):
    return pl.Series(range(n))


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
#: That of survival, with Q̂ of each action, good for one and bad for the other, and V̂ = ¾ Q̂(go) + ¼ Q̂(stop).
MODELLED = Problem(
    tuple(
        (chance, [row | model for row, model in zip(rows, ({"v_hat": 1.25}, {"v_hat": 0.625}), strict=False)])
        for chance, rows in (
            (HALF, [STOP | {"q_hat": 0.5}]),
            (QUARTER, [GO | {"q_hat": 1.5}, GO | {"q_hat": 0.5}]),
            (QUARTER, [GO | {"q_hat": 1.5}, STOP | {"q_hat": 1.0}]),
        )
    ),
    0.5,
    2,
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
