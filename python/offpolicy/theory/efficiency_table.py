"""The ratio of each estimator's variance to the Cramér-Rao bounds."""

from __future__ import annotations

import math

import polars as pl
from numpy.typing import ArrayLike

from offpolicy.theory.arrays import Number
from offpolicy.theory.cramer_rao import cramer_rao_dag, cramer_rao_tree
from offpolicy.theory.dr import dr_bsl_variance, dr_variance, step_is_variance
from offpolicy.theory.mdp import MDP
from offpolicy.theory.step_wis import step_wis_variance
from offpolicy.theory.trajectory_is import is_variance, wis_variance
from offpolicy.theory.values import q_values
from offpolicy.theory.wdr import wdr_variance

SCHEMA = {
    "estimator": pl.String,
    "q_hat": pl.String,
    "variance": pl.Float64,
    "kind": pl.String,
    "over_tree": pl.Float64,
    "over_dag": pl.Float64,
}


def efficiency(
    mdp: MDP,
    behavior: ArrayLike,
    target: ArrayLike,
    q_hat: ArrayLike | None = None,
    baseline: Number | None = None,
) -> pl.DataFrame:
    """Return each estimator's variance for one trajectory, and its ratio to the bounds of Theorems 2 and 3.

    `over_tree` is the variance divided by the bound for estimators that treat states as histories, which `dr` with the
    true Q attains. `over_dag` is the variance divided by the bound for estimators that know that states are Markov. The
    bounds are those of the unrolled MDP. An `asymptotic` variance is the limit of n · Var. `dr` and `wdr` have one row
    with the true Q, and one with `q_hat` if it is given; `dr-bsl` has a row if `baseline` is given. A ratio is null
    where both variance and bound are 0.

    `reg`, `dr-v2` and `magic`, which blends `reg` in, are left out: with a wrong model they are biased, and the bounds
    hold for unbiased estimators only (a constant has no variance at all).

    >>> from offpolicy import theory
    >>> loop = theory.MDP([[[0.5, 0.5]] * 2, [[0.5, 0.5]] * 2], [[1.0, 2.0], [0.0, 0.0]], [0.5, 0.5], horizon=3)
    >>> table = theory.efficiency(loop, [[0.5, 0.5]] * 2, [[0.25, 0.75]] * 2)
    >>> dict(zip(table["estimator"], table["over_tree"].round(2), strict=True))
    {'is': 4.98, 'step-is': 2.97, 'wis': 1.94, 'step-wis': 1.56, 'dr': 1.0, 'wdr': 1.0}
    """
    pair = mdp, behavior, target
    rows: list[tuple[str, str | None, Number, str]] = [
        ("is", None, is_variance(*pair), "exact"),
        ("step-is", None, step_is_variance(*pair), "exact"),
        ("wis", None, wis_variance(*pair), "asymptotic"),
        ("step-wis", None, step_wis_variance(*pair), "asymptotic"),
    ]
    if baseline is not None:
        rows.append(("dr-bsl", None, dr_bsl_variance(*pair, baseline), "exact"))
    models = [("given", q_hat)] if q_hat is not None else []
    models.append(("true", q_values(mdp, target)))
    rows += [("dr", name, dr_variance(*pair, model), "exact") for name, model in models]
    rows += [("wdr", name, wdr_variance(*pair, model), "asymptotic") for name, model in models]
    tree, dag = cramer_rao_tree(*pair, unroll=True), cramer_rao_dag(*pair, unroll=True)
    table = [
        (estimator, model, float(spread), kind, _over(spread, tree), _over(spread, dag))
        for estimator, model, spread, kind in rows
    ]
    return pl.DataFrame(table, schema=SCHEMA, orient="row")


def _over(spread: Number, bound: Number) -> float | None:
    if bound == 0:
        return None if spread == 0 else math.inf
    return float(spread / bound)
