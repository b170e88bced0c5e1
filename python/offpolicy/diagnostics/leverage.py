"""How much one trajectory has of an estimate. With values x_i, their mean x̄, and final weights c_i:

    concentration            max (x_i − x̄)² / Σ (x_i − x̄)²,                 weighted estimators: max ψ_i² / Σ ψ_i²
    without the k largest    Σ' x_i / (n − k),                              wis: Σ' c_i G_i / Σ' c_i
    capped at the tenth      mean of v_i + (x_i − v_i) min(1, c_(10)/c_i),  wis: min(c_i, c_(10)) in the place of c_i

    skewness                 mean (x_i − x̄)³ / (mean (x_i − x̄)²)^{3/2},      weighted estimators: of ψ_i

ψ_i are influence values, known after a second reading; Σ' leaves out the k trajectories with the largest weights; v_i
is V̂(s_1) for the doubly robust estimators and 0 for the others. `step-wis` and `wdr` have the first and the last alone,
`magic` has none: what a trajectory adds to them depends on every step of all others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import polars as pl

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
#: Trajectories that the core keeps for their weight.
TEN = 10
#: Estimators whose value is a correction of V̂(s_1).
CORRECTED = ("dr", "dr-v2")
CAPPED = ("is", "step-is", "wis", *CORRECTED)


@dataclass(frozen=True)
class Leading:
    """An estimate as total / size, and what each of the leading trajectories has of both; `kept` a cap leaves alone."""

    total: float
    size: float
    leading: list[tuple[float, float]]
    kept: list[float]

    def without(self, k: int) -> float | None:
        """The estimate without the first k."""
        left = self.size - sum(size for _, size in self.leading[:k])
        return (self.total - sum(x for x, _ in self.leading[:k])) / left if left > 0 else None

    def capped(self, cuts: list[float], lose_size: bool) -> float:
        """The estimate where each of the leading ones loses a part of what it adds, and of its size too."""
        lost = sum(cut * (x - v) for cut, (x, _), v in zip(cuts, self.leading, self.kept, strict=True))
        size = sum(cut * size for cut, (_, size) in zip(cuts, self.leading, strict=True)) if lose_size else 0.0
        return (self.total - lost) / (self.size - size)


def moved(
    policy: str, found: dict[str, Any], n: int, mean_weight: float, leaders: list[dict[str, Any]]
) -> dict[str, Any]:
    """A row of the table, for what the core found of an estimator; None where f64 or the leaders do not tell."""
    estimator, value = found["estimator"], found["value"]["value"]
    row = {"policy": policy, "estimator": estimator, "value": value}
    row |= {name: found[name] for name in ("concentration", "skewness")}
    weights = [leader["weight"]["value"] for leader in leaders]
    parts = None if value is None or None in weights else _parts(estimator, value, n, mean_weight, leaders)
    if parts is None:
        return row
    row["without_largest"] = parts.without(1)
    if len(leaders) == TEN:
        row["without_ten"] = parts.without(TEN)
        if estimator in CAPPED and weights[-1] > 0:
            row["capped"] = parts.capped([1 - weights[-1] / c for c in weights], lose_size=estimator == "wis")
    return {name: None if isinstance(x, float) and not math.isfinite(x) else x for name, x in row.items()}


def _parts(estimator: str, value: float, n: int, mean_weight: float, leaders: list[dict[str, Any]]) -> Leading | None:
    """None where a leading trajectory has no value of its own."""
    if estimator == "wis":
        weights = [leader["weight"]["value"] for leader in leaders]
        returns = [leader["returns"]["value"] for leader in leaders]
        values: list[Any] = [g if g is None else c * g for c, g in zip(weights, returns, strict=True)]
        sizes = weights
        total, size = value * mean_weight * n, mean_weight * n
    else:
        values = [dict(leader["values"]).get(estimator, {}).get("value") for leader in leaders]
        sizes, total, size = [1.0] * len(leaders), value * n, float(n)
    kept = [leader["first_v_hat"]["value"] if estimator in CORRECTED else 0.0 for leader in leaders]
    if not leaders or None in values or None in kept:
        return None
    return Leading(total, size, list(zip(values, sizes, strict=True)), kept)
