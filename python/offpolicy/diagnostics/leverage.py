"""How an estimate moves without the trajectories that weigh most. With values x_i and final weights c_i:

    without the k largest    Σ' x_i / (n − k),                            wis: Σ' c_i G_i / Σ' c_i
    capped at the tenth      mean of v_i + (x_i − v_i) min(1, c_(10)/c_i),    wis: min(c_i, c_(10)) for c_i

where Σ' leaves these k out, and v_i is V̂(s_1) for the doubly robust estimators and 0 for the others. How much one
trajectory has of the variance is its concentration, with the mean x̄, or influence values ψ_i of weighted estimators:

    max (x_i − x̄)² / Σ (x_i − x̄)²,    max ψ_i² / Σ ψ_i²

(for wis, the largest of the ten trajectories that weigh most).
"""

from __future__ import annotations

import math
from typing import Any

import polars as pl

SCHEMA = {
    "policy": pl.String,
    "estimator": pl.String,
    "value": pl.Float64,
    "concentration": pl.Float64,
    "without_largest": pl.Float64,
    "without_ten": pl.Float64,
    "capped": pl.Float64,
}
#: Estimators whose value is a correction of V̂(s_1).
CORRECTED = ("dr", "dr-v2")
CAPPED = ("is", "step-is", *CORRECTED)


def moved(
    policy: str, found: dict[str, Any], n: int, mean_weight: float, leaders: list[dict[str, Any]]
) -> dict[str, Any]:
    """A row of the table, for what the core found of an estimator; None where f64 or the leaders do not tell."""
    row = _moved(policy, found, n, mean_weight, leaders)
    return {name: None if isinstance(x, float) and not math.isfinite(x) else x for name, x in row.items()}


def _moved(
    policy: str, found: dict[str, Any], n: int, mean_weight: float, leaders: list[dict[str, Any]]
) -> dict[str, Any]:
    estimator, value = found["estimator"], found["value"]["value"]
    row: dict[str, Any] = {"policy": policy, "estimator": estimator, "value": value}
    row["concentration"] = found["concentration"]
    weights = [leader["weight"]["value"] for leader in leaders]
    if value is None or None in weights:
        return row
    if estimator == "wis":
        returns = [leader["returns"]["value"] for leader in leaders]
        parts = [(c * g, c) for c, g in zip(weights, returns, strict=True) if g is not None]
        total, size = value * mean_weight * n, mean_weight * n
        error = (found["std_error"] or {}).get("value")
        if parts and error:
            largest = max(abs(x - value * c) for x, c in parts) / mean_weight / error
            row["concentration"] = min(largest * largest / (n * (n - 1)), 1.0)
    else:
        values = [dict(leader["values"]).get(estimator, {}).get("value") for leader in leaders]
        parts = [(x, 1.0) for x in values if x is not None]
        total, size = value * n, float(n)
    if len(parts) < len(leaders) or not parts:
        return row

    def without(k: int) -> float | None:
        left = size - sum(part for _, part in parts[:k])
        return (total - sum(x for x, _ in parts[:k])) / left if n > k and left > 0 else None

    row["without_largest"] = without(1)
    if len(parts) == 10:
        row["without_ten"] = without(10)
    cap = weights[-1]
    if len(parts) == 10 and cap > 0 and estimator in (*CAPPED, "wis"):
        cuts = [1 - cap / c for c in weights]
        if estimator == "wis":
            lost = sum(cut * part for cut, (_, part) in zip(cuts, parts, strict=True))
            row["capped"] = (total - sum(cut * x for cut, (x, _) in zip(cuts, parts, strict=True))) / (size - lost)
        else:
            first = [leader["first_v_hat"]["value"] if estimator in CORRECTED else 0.0 for leader in leaders]
            row["capped"] = value - sum(cut * (x - v) for cut, (x, _), v in zip(cuts, parts, first, strict=True)) / n
    return row
