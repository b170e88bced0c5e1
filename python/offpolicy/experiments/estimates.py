"""Point estimates from a part of a simulated log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from offpolicy.evaluation.estimators import WEIGHTED
from offpolicy.evaluation.evaluate import NoWeightError, evaluate
from offpolicy.logs.columns import PolicyColumns


def cut(log: pl.DataFrame, episodes: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split a log into the first episodes and the others."""
    rows = int(log["episode"].search_sorted(episodes, side="left"))
    return log[:rows], log[rows:]


def estimated(
    log: pl.DataFrame, policies: dict[str, PolicyColumns], estimators: Sequence[str], settings: dict[str, Any]
) -> dict[tuple[str, str], float]:
    """Return estimates by policy and estimator; steps after all weights have become 0 add 0 to weighted estimates."""
    try:
        ev = evaluate(log, policies=policies, estimators=estimators, diagnostics=False, **settings)
    except NoWeightError as error:
        plain = [name for name in estimators if name not in WEIGHTED]
        found = estimated(log, policies, plain, settings) if plain else {}
        others = {name: names for name, names in policies.items() if name != error.policy}
        weighted = [name for name in estimators if name in WEIGHTED]
        found |= estimated(log, others, weighted, settings) if others else {}
        before = log.filter(pl.col("step") < error.step - 1).drop("terminal", strict=False)  # cut on purpose
        only = {error.policy: policies[error.policy]}
        none = {(error.policy, name): 0.0 for name in weighted}
        return found | (estimated(before, only, weighted, settings) if before.height else none)
    return {(each.policy, each.estimator): each.value for each in ev.estimates if each.value is not None}
