"""The leverage of single trajectories on an estimate. With values x_i, their mean x̄, and final weights c_i:

    concentration            max (x_i − x̄)² / Σ (x_i − x̄)²,                 weighted estimators: max ψ_i² / Σ ψ_i²
    without the k largest    Σ' x_i / (n − k),                              wis: Σ' c_i G_i / Σ' c_i
    capped at the tenth      mean of v_i + (x_i − v_i) min(1, c_(10)/c_i),  wis: min(c_i, c_(10)) in place of c_i

    skewness                 mean (x_i − x̄)³ / (mean (x_i − x̄)²)^{3/2},      weighted estimators: of ψ_i

ψ_i are influence values, which a second pass computes. Σ' leaves out the k trajectories with the largest weights. v_i
is V̂(s_1) for the doubly robust estimators and 0 for the others; it is not known for estimators of plugins. `step-wis`
and `wdr` have only the first and the last of these numbers and `magic` has none, because a trajectory's contribution to
them depends on every step of all others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from offpolicy import _core
from offpolicy.evaluation.estimators import describe
from offpolicy.evaluation.outcome import Exactly, Found, FoundByPlugin, Quantity

SCHEMA = {
    "policy": pl.String,
    "estimator": pl.String,
    "value": pl.Float64,
    "concentration": pl.Float64,
    "skewness": pl.Float64,
    "without_largest": pl.Float64,
    "without_ten": pl.Float64,
    "capped": pl.Float64,
}
#: The number of trajectories with the largest weights that the core keeps.
TEN = 10


@dataclass(frozen=True)
class Leading:
    """An estimate total / size and the part (x, size) of each leading trajectory; a cap does not change `kept` of x."""

    total: float
    size: float
    leading: list[tuple[float, float]]
    kept: list[float]

    def without(self, k: int) -> float | None:
        """Return the estimate without the first k leading trajectories."""
        left = self.size - sum(size for _, size in self.leading[:k])
        return (self.total - sum(x for x, _ in self.leading[:k])) / left if left > 0 else None

    def capped(self, cuts: list[float], lose_size: bool) -> float | None:
        """Return the estimate after cutting a fraction of each leading trajectory's part, and of its size if asked.

        Return None if nothing but rounding remains of the size.
        """
        lost = sum(cut * (x - v) for cut, (x, _), v in zip(cuts, self.leading, self.kept, strict=True))
        size = sum(cut * size for cut, (_, size) in zip(cuts, self.leading, strict=True)) if lose_size else 0.0
        return (self.total - lost) / (self.size - size) if self.size > size else None


def moved(
    policy: str, found: Found, n: int, mean_weight: float | None, leaders: Sequence[_core.Leader]
) -> dict[str, Any]:
    """Return one row of the table; a number is None if it is out of f64 range or the leaders do not determine it."""
    estimator, value = found.estimator, found.value.value
    row: dict[str, Any] = {"policy": policy, "estimator": estimator, "value": value}
    row |= {"concentration": found.concentration, "skewness": found.skewness}
    weights = _known(leader.weight for leader in leaders)
    if value is None or mean_weight is None or weights is None:
        return row
    parts = _parts(found, value, n, mean_weight, leaders, weights)
    if parts is None:
        return row
    row["without_largest"] = parts.without(1)
    if len(leaders) == TEN:
        row["without_ten"] = parts.without(TEN)
        about = describe(estimator)
        # A cap does not change V̂(s_1) or 0, but that part is not known here with a baseline or for a plugin.
        known = not (about.needs_baseline or isinstance(found, FoundByPlugin))
        if about.uses_weights and known and weights[-1] > 0:
            row["capped"] = parts.capped([1 - weights[-1] / c for c in weights], lose_size=about.weighted)
    return {name: None if isinstance(x, float) and not math.isfinite(x) else x for name, x in row.items()}


def _parts(
    found: Found, value: float, n: int, mean_weight: float, leaders: Sequence[_core.Leader], weights: list[float]
) -> Leading | None:
    """Return the estimate and its leading trajectories, or None if one of these has no known value."""
    about = describe(found.estimator)
    of_returns = about.weighted and about.weights_returns
    values = _known(leader.returns if of_returns else _value(found, leader) for leader in leaders)
    kept = _known(leader.first_v_hat for leader in leaders) if about.corrects_first_value else [0.0] * len(leaders)
    if not leaders or values is None or kept is None:
        return None
    if of_returns:
        leading = [(c * g, c) for c, g in zip(weights, values, strict=True)]
        return Leading(value * mean_weight * n, mean_weight * n, leading, kept)
    return Leading(value * n, float(n), [(x, 1.0) for x in values], kept)


def _value(found: Found, leader: _core.Leader) -> Quantity | None:
    """Return the estimator's value of a leading trajectory."""
    if isinstance(found, FoundByPlugin):
        return Exactly(found.leading[leader.episode]) if leader.episode in found.leading else None
    return leader.values.get(found.estimator)


def _known(numbers: Iterable[Quantity | None]) -> list[float] | None:
    """Return numbers as floats, or None if one is missing or out of f64 range."""
    found = [None if number is None else number.value for number in numbers]
    known = [x for x in found if x is not None]
    return known if len(known) == len(found) else None
