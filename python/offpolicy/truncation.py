"""Episodes that were cut off before the horizon: what stands for the rewards that nobody saw.

    as-terminal      nothing, as if the episode had ended there
    bootstrap        what the model expects: Q̂(s_T, a_T) − R̂(s_T, a_T) = γ E[V̂(s_{T+1})] is added to the last reward r_T
    reduce-horizon   no rewards are missing: H is the length of the shortest episode that was cut off, for all episodes

For the last two the log, once it has been checked as it is, is written anew to temporary files, piece by piece.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from offpolicy import polars_calls
from offpolicy.errors import UsageError
from offpolicy.interruptible import interruptible
from offpolicy.plan import Plan
from offpolicy.scratch import ScratchFolder
from offpolicy.sources import ParquetSource, Source

#: Estimators without a meaning then, and why.
SENSELESS = {
    "bootstrap": (("mc", "dr-v2"), "it does not take a model's value for the rewards that are missing"),
    "reduce-horizon": (
        ("reg", "dr-v2", "magic"),
        "it counts on V̂, which is of more steps than the reduced horizon has",
    ),
}


@dataclass(frozen=True)
class Mended:
    """The log and the plan to go on with, and what was done."""

    source: Source
    plan: Plan
    repairs: dict[str, Any]
    remarks: list[str] = field(default_factory=list)
    #: What was taken for the rewards that are missing.
    taken: str | None = None


def with_checks(plan: Plan) -> Plan:
    """The plan that also reads, and so checks, the columns that a bootstrap needs."""
    if plan.settings.truncation != "bootstrap":
        return plan
    return replace(plan, extra=tuple((column, "finite") for column in _model(plan)))


def mend(source: Source, plan: Plan, cut: int, explicit: bool) -> Mended:
    """What becomes of a log with so many episodes cut off; an estimator asked for by name is refused, not left out."""
    if plan.settings.truncation == "as-terminal":
        remark = f"{cut} truncated episodes were taken as ended"
        return Mended(source, plan, {"truncated_as_terminal": cut}, [remark], remark)
    plan, remarks = _without_senseless(plan, explicit)
    first, last, shortest = _extent(source, plan)
    step = pl.col(plan.columns.step)
    if plan.settings.truncation == "reduce-horizon":
        horizon = shortest - first + 1
        shorter = replace(plan, settings=replace(plan.settings, horizon=horizon))
        made = _rewritten(source, plan.names(), lambda piece: piece.filter(step <= shortest))
        remarks.append(f"{cut} episodes were truncated: all are evaluated for their first {horizon} steps")
        return Mended(made, shorter, {"horizon_reduced_to": horizon}, remarks)
    q_hat, r_hat = _model(plan)
    before = step - first + 1 < (plan.settings.horizon or last - first + 1)
    reward = pl.col(plan.columns.reward).cast(pl.Float64)
    expected = pl.when(pl.col(plan.truncated or "") & before).then(pl.col(q_hat) - pl.col(r_hat)).otherwise(0.0)
    names = list(dict.fromkeys([*plan.names(), q_hat, r_hat]))
    made = _rewritten(source, names, lambda piece: piece.with_columns(reward + expected))
    remark = f"the later rewards of {cut} truncated episodes were taken from the model"
    return Mended(made, plan, {"truncated_bootstrapped": cut}, [*remarks, remark], remark)


def _model(plan: Plan) -> tuple[str, str]:
    """The columns of Q̂ and R̂."""
    if len(plan.policies) != 1:
        raise UsageError('truncation="bootstrap" takes one policy at a time: the last rewards are those of its model')
    (policy,) = plan.policies
    for role in ("q_hat", "r_hat"):
        if role not in policy.models:
            raise UsageError(f'truncation="bootstrap" needs a column {role} of policy {policy.name!r}')
    return policy.models["q_hat"], policy.models["r_hat"]


def _without_senseless(plan: Plan, explicit: bool) -> tuple[Plan, list[str]]:
    kind = str(plan.settings.truncation)
    senseless, why = SENSELESS[kind]
    asked = {estimator for policy in plan.policies for estimator in policy.estimators} | ({"mc"} if plan.mc else set())
    if not (found := [estimator for estimator in senseless if estimator in asked]):
        return plan, []
    if explicit:
        raise UsageError(f'estimator {found[0]!r} cannot be had with truncation="{kind}": {why}')
    for policy in plan.policies:
        plan = plan.without(policy.name, senseless)
    return replace(plan, mc=plan.mc and "mc" not in senseless), [f"{', '.join(found)} left out: {why}"]


def _extent(source: Source, plan: Plan) -> tuple[int, int, int]:
    """The first and the last step of the log, and the first at which an episode was cut off."""
    step, cut = pl.col(plan.columns.step), pl.col(plan.truncated or "")
    found = [
        piece.select(step.min(), step.max().alias("last"), step.filter(cut).min().alias("cut"))
        for piece in source.pieces()
    ]
    whole = pl.concat(found, how="vertical_relaxed").select(step.min(), pl.col("last").max(), pl.col("cut").min())
    first, last, shortest = interruptible(lambda _: whole.collect(engine="streaming")).row(0)
    return first, last, shortest


def _rewritten(source: Source, names: list[str], change: Callable[[pl.LazyFrame], pl.LazyFrame]) -> Source:
    """The named columns of a log, changed, in temporary files: one a piece, so that episodes stay as they lie."""
    folder, paths = ScratchFolder(), []

    def write(go_on: Callable[[], None]) -> None:
        for number, piece in enumerate(source.pieces()):
            go_on()
            paths.append(folder.path / f"{number}.parquet")
            polars_calls.write_parquet(change(piece.select(names)), paths[-1], {})

    interruptible(write)
    made = ParquetSource([str(path) for path in paths], keep=folder)
    made.names = source.names if len(source.names) == len(paths) else [", ".join(source.names)] * len(paths)
    made.rows_are_the_logs = False
    return made
