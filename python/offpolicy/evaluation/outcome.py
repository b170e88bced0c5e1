"""What an evaluation found: the numbers of the core, and those of the estimators that plugins bring.

Of the values x_i of n trajectories, with sums that are exact whatever their order,

    x̄ = Σ x_i / n,    SE² = (Σ x_i² − (Σ x_i)²/n) / (n (n − 1)),    γ = m_3 / m_2^{3/2}

so that an estimate does not depend on how the log was cut or read, as one of the core does not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import polars as pl

from offpolicy import _core
from offpolicy._util.exact_sums import exact_dot, exact_sum
from offpolicy.evaluation.bounds import Range
from offpolicy.evaluation.estimators import RETURNS, from_plugin
from offpolicy.evaluation.plan import BEHAVIOR, Plan
from offpolicy.logs.trajectories import Samples
from offpolicy.protocols import Floats


class Quantity(Protocol):
    """A number that f64 may not hold: then `value` is None, and `log10` is that of its magnitude."""

    @property
    def value(self) -> float | None: ...  # noqa: D102
    @property
    def log10(self) -> float | None: ...  # noqa: D102


class Found(Protocol):
    """What was found of one estimator of one policy, as `_core.EstimateOutcome` has it."""

    @property
    def policy(self) -> int: ...  # noqa: D102
    @property
    def estimator(self) -> str: ...  # noqa: D102
    @property
    def value(self) -> Quantity: ...  # noqa: D102
    @property
    def std_error(self) -> Quantity | None: ...  # noqa: D102
    @property
    def extremes(self) -> Range | None: ...  # noqa: D102
    @property
    def concentration(self) -> float | None: ...  # noqa: D102
    @property
    def skewness(self) -> float | None: ...  # noqa: D102
    @property
    def difference(self) -> FoundDifference | None: ...  # noqa: D102
    @property
    def blend(self) -> list[tuple[int, float]] | None: ...  # noqa: D102


class FoundDifference(Protocol):
    """An estimate less the mean return, as `_core.DifferenceOutcome` has it."""

    @property
    def value(self) -> Quantity: ...  # noqa: D102
    @property
    def std_error(self) -> Quantity | None: ...  # noqa: D102
    @property
    def extremes(self) -> Range | None: ...  # noqa: D102


class Outcome(Protocol):
    """All that an evaluation found, as `_core.Outcome` has it."""

    @property
    def episodes(self) -> int: ...  # noqa: D102
    @property
    def steps(self) -> int: ...  # noqa: D102
    @property
    def horizon(self) -> int: ...  # noqa: D102
    @property
    def lengths(self) -> list[tuple[int, int]]: ...  # noqa: D102
    @property
    def estimates(self) -> Sequence[Found]: ...  # noqa: D102
    @property
    def weights(self) -> list[_core.WeightsOutcome]: ...  # noqa: D102


@dataclass(frozen=True)
class Exactly:
    """A number that f64 holds."""

    value: float
    log10: None = None


@dataclass(frozen=True)
class Moments:
    """Mean, standard error, and what tells whether these can be trusted, of the values of n trajectories.

    >>> import numpy as np
    >>> found = Moments.of(np.array([0.0, 0.0, 0.0, 4.0]))
    >>> found.value.value, found.std_error.value, found.concentration, round(found.skewness, 6)
    (1.0, 1.0, 0.75, 1.154701)
    """

    value: Exactly
    std_error: Exactly | None
    extremes: Range
    concentration: float
    skewness: float

    @classmethod
    def of(cls, x: Floats) -> Moments:
        """Return those of finite values, whatever their order."""
        n, exponent = len(x), int(np.frexp(np.abs(x).max())[1])
        scaled = np.ldexp(x, -exponent)  # below 1, so that no square or cube is beyond f64
        total = exact_sum(scaled)
        squares = max(exact_dot(scaled, scaled) - total**2 / n, Fraction(0))
        centred = scaled - float(total / n)
        value = float(total / n * Fraction(2) ** exponent)
        error = None
        if n > 1:
            error = Exactly(math.ldexp(math.sqrt(squares / (n * (n - 1))), exponent))
        share = skewness = 0.0
        if spread := float(squares):
            share = min(float(np.square(centred).max()) / spread, 1.0)
            skewness = float(exact_sum(centred * centred * centred) / n) / (spread / n) ** 1.5
        return cls(Exactly(value), error, (float(x.min()), float(x.max())), share, skewness)


@dataclass(frozen=True)
class FoundByPlugin:
    """What a plugin's estimator found of a policy; `leading` has the values of the trajectories that weigh most."""

    policy: int
    estimator: str
    value: Exactly
    std_error: Exactly | None
    extremes: Range
    concentration: float
    skewness: float
    difference: Moments | None
    leading: Mapping[Any, float] = field(default_factory=dict)
    blend: None = None


@dataclass(frozen=True)
class WithPlugins:
    """What the core found, with the estimates of plugins among its own, and without what nobody asked for."""

    core: _core.Outcome
    estimates: Sequence[Found]

    @property
    def episodes(self) -> int:
        """How many there are."""
        return self.core.episodes

    @property
    def steps(self) -> int:
        """How many rows they have."""
        return self.core.steps

    @property
    def horizon(self) -> int:
        """H."""
        return self.core.horizon

    @property
    def lengths(self) -> list[tuple[int, int]]:
        """How many episodes have which length."""
        return self.core.lengths

    @property
    def weights(self) -> list[_core.WeightsOutcome]:
        """What is known of the weights of each policy."""
        return self.core.weights


def with_plugins(core: _core.Outcome, plan: Plan, samples: Samples) -> Outcome:
    """Ask plugins for the estimates that they bring; each reads the log once more."""
    asked = [estimator for policy in plan.policies for estimator in policy.estimators]
    if all(from_plugin(estimator) is None for estimator in asked):
        return core
    computed: dict[tuple[int, str], Found] = {(row.policy, row.estimator): row for row in core.estimates}
    rows = [row for row in core.estimates if row.policy == 0]
    returns = samples.values(BEHAVIOR, RETURNS) if plan.paired else None
    found: list[Found] = [*rows]
    for number, policy in enumerate(plan.policies, start=1):
        leaders = _leaders(core.weights[number])
        for estimator in policy.estimators:
            if from_plugin(estimator) is None:
                found.append(computed[number, estimator])
            else:
                values = samples.values(policy.name, estimator)
                found.append(_of_values(number, estimator, values, returns, leaders))
    return WithPlugins(core, found)


def _leaders(weights: _core.WeightsOutcome) -> list[Any]:
    return [leader.episode for leader in weights.diagnosis.leaders] if weights.diagnosis else []


def _of_values(
    policy: int, estimator: str, found: pl.DataFrame, returns: pl.DataFrame | None, leaders: list[Any]
) -> FoundByPlugin:
    moments, difference = Moments.of(found["value"].to_numpy()), None
    if returns is not None:
        both = found.join(returns.rename({"value": "return"}), on="episode", how="left", maintain_order="left")
        difference = Moments.of((both["value"] - both["return"]).to_numpy())
    leading = dict(found.filter(pl.col("episode").is_in(pl.Series(leaders, dtype=found["episode"].dtype))).iter_rows())
    return FoundByPlugin(policy, estimator, **vars(moments), difference=difference, leading=leading)
